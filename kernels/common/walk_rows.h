// How a block's teams go through their rows, and how many rows a block has.
#pragma once

#include "held_rows.h"
#include "rows.h"

namespace gradlint::GRADLINT_SPACE {

// Calls body(team, row, walk) for each row of this thread's team. The first Rows operands are
// matrices, the others one row that all rows share; null has the value `absent` everywhere. Past
// the last row, a walk has the length 0. A row that is held is on its way while the one before it
// is worked on.
template <class T, bool Held, int Rows, int In, class Body>
GRADLINT_BOTH void walk_rows(const RowPlan& plan, const Block& block,
                             const T* const (&operands)[In], const Wide<T> (&absent)[In],
                             const Body& body) {
  if constexpr (Held) {
    const Team team = plan.team(block);
    const int length = static_cast<int>(plan.length);
    HeldPacks<T, In> packs;
    for (int k = Rows; k < In; ++k) {
      if (operands[k] == nullptr) {
        packs.fill(k, narrowed<T>(absent[k]));
      } else {
        packs.load(team, length, k, operands[k]);
      }
    }
    HeldPacks<T, Rows> ahead;
    const int64_t next = plan.teams(), first = plan.row(block, team, 0);
    const int64_t left = first < plan.rows ? (plan.rows - first + next - 1) / next : 0;
    const int steps = static_cast<int>(plan.steps);
    const int own = static_cast<int>(left < steps ? left : steps);
    const T* at[Rows];
    for (int k = 0; k < Rows; ++k) {
      at[k] = operands[k] + first * plan.length;
      if (own > 0) ahead.load(team, length, k, at[k]);
    }
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int step = 0; step < steps; ++step) {
      for (int k = 0; k < Rows; ++k) {
        for (int pack = 0; pack < packs.count; ++pack) packs.at[k][pack] = ahead.at[k][pack];
        at[k] += next * plan.length;
        if (step + 1 < own) ahead.load(team, length, k, at[k]);
      }
      body(team, first + step * next, HeldRow<T, In>(team, step < own ? length : 0, packs));
    }
  } else {
    plan.each_row(block, [&](const Team& team, int64_t row, int64_t length) {
      const T* rows[In];
      for (int k = 0; k < In; ++k) {
        const bool own = k < Rows && operands[k] != nullptr;
        rows[k] = own ? operands[k] + row * plan.length : operands[k];
      }
      T* const kept = plan.kept ? static_cast<T*>(block.memory) +
                                      team.index * Rows * kept_length<T>(plan.length)
                                : nullptr;
      body(team, row, RowWalk<T, In, Rows>(team, length, plan.packed, rows, absent, kept));
    });
  }
}

// The plan with as many rows for each block as `waves` times the blocks that the device runs at
// once leave to it, and at most `most`; on the CPU, as many as it had.
template <class Body>
RowPlan in_waves(const Context& context, RowPlan plan, int64_t waves, int64_t most,
                 size_t memory) {
#ifdef GRADLINT_DEVICE
  const int64_t blocks = waves * device::resident<Block, Body>(context, plan.threads, memory);
  const int64_t at_once = blocks * plan.teams();
  plan.steps = (plan.rows + at_once - 1) / at_once;
#else
  (void)context, (void)waves, (void)memory;
#endif
  if (plan.steps > most) plan.steps = most;
  if (plan.steps < 1) plan.steps = 1;
  return plan;
}

// Launches Body{plan, fields…}, whose rows are not held. `Rows` of its operands are kept in the
// memory that a block shares, if there is so much of it.
template <class T, int Rows, class Body, class... Fields>
void launch_walk(const Context& context, RowPlan plan, const Fields&... fields) {
  size_t memory = 0;
#ifdef GRADLINT_DEVICE
  memory = sizeof(T) * Rows * plan.teams() * static_cast<size_t>(kept_length<T>(plan.length));
  constexpr size_t blocks = 3;  // at once, so that one reads while another computes (heuristic)
  plan.kept = memory <= device::most_memory() / blocks;
  if (!plan.kept) memory = 0;
#endif
  launch(context, plan.blocks(), plan.threads, memory, Body{plan, fields...});
}

// Launches Body<T, held>{plan, fields…}, whose first `Rows` operands are matrices.
template <template <class, bool> class Body, class T, int Rows, class... Fields>
void launch_rows(const Context& context, const RowPlan& plan, const Fields&... fields) {
  if (plan.held) {
    // Some rows one after the other, as they are read ahead, but no few long blocks of which one
    // may be late (heuristic).
    constexpr int64_t waves = 2, most = 1024;
    const RowPlan spread = in_waves<Body<T, true>>(context, plan, waves, most, 0);
    launch(context, spread.blocks(), spread.threads, 0, Body<T, true>{spread, fields...});
  } else {
    launch_walk<T, Rows, Body<T, false>>(context, plan, fields...);
  }
}

}  // namespace gradlint::GRADLINT_SPACE
