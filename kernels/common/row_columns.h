// Sums down the columns of rows while these are worked on: a lane has the same columns in each row
// that it holds, and keeps their sums in registers. Their blocks leave partial sums, which a second
// launch adds up (columns.h).
#pragma once

#include "walk_rows.h"

namespace gradlint::GRADLINT_SPACE {

// K sums for each of the lane's columns. Plain sums: a block has at most `most_steps` rows for a
// lane, and what those round off is not added up over blocks.
template <class T, int K>
struct RowColumns {
  using W = Wide<T>;
  static constexpr int64_t most_steps = 256;  // the square root of a large number of rows
  W sums[K][held_slots<T>] = {};

  // Bytes that a block shares, to join its teams.
  static size_t memory(const RowPlan& plan) {
    return plan.teams() > 1 ? sizeof(W) * K * plan.teams() * plan.length : 0;
  }

  // Writes the sums over the rows of the block to partials[block][k][column].
  GRADLINT_BOTH void store(const RowPlan& plan, const Block& block, W* partials) const {
    const Team team = plan.team(block);
    const int64_t count = K * plan.length;
    W* const joined = partials + block.index * count;
    if (plan.teams() == 1) {
      put(team, plan.length, joined);
      return;
    }
    W* const of_teams = static_cast<W*>(block.memory);
    put(team, plan.length, of_teams + team.index * count);
    block.sync();
    for (int64_t at = block.thread; at < count; at += block.threads) {
      W sum = of_teams[at];
      for (int other = 1; other < plan.teams(); ++other) sum += of_teams[other * count + at];
      joined[at] = sum;
    }
  }

 private:
  GRADLINT_BOTH void put(const Team& team, int64_t length, W* to) const {
    constexpr int size = Pack<T>::size;
    GRADLINT_UNROLLED for (int slot = 0; slot < held_slots<T>; ++slot) {
      const int64_t column = (slot / size * team.lanes + team.lane) * size + slot % size;
      if (column >= length) continue;
      for (int k = 0; k < K; ++k) to[k * length + column] = sums[k][slot];
    }
  }
};

}  // namespace gradlint::GRADLINT_SPACE
