// How the rows of a dense matrix are spread over blocks and threads.
#pragma once

#include <initializer_list>

#include "map.h"
#include "team.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int most_lanes = 512;   // of 65536 registers, each thread may have 128
constexpr int long_lanes = 256;   // each thread may have 255, for rows that are read twice
constexpr int row_threads = 128;  // of a block of small teams (heuristic: four warps)
#else
constexpr int most_lanes = 1;
constexpr int long_lanes = 1;
constexpr int row_threads = 1;
#endif

// Elements of each operand that a lane has of a row that is read again: 32 bytes once widened.
template <class T>
constexpr int row_slots = sizeof(T) == 8 ? 4 : 8;

// Those that it holds of a row: 32 bytes of memory. Fewer would leave it with more instructions for
// each, to join the lanes, than a GPU has time for beside the memory.
template <class T>
constexpr int held_slots = 32 / sizeof(T);

// Most lanes of a team that holds rows: 16 slots take more registers than each of so many threads
// may have.
template <class T>
constexpr int held_lanes =
    held_slots<T> > row_slots<T> && most_lanes > long_lanes ? long_lanes : most_lanes;

// Most threads of a block whose teams hold rows, or read them again.
template <class T, bool Held>
constexpr int row_block = (Held ? held_lanes<T> : long_lanes) > row_threads
                              ? (Held ? held_lanes<T> : long_lanes)
                              : row_threads;

// How the rows are spread over blocks and threads.
struct RowPlan {
  int64_t rows;
  int64_t length;
  int64_t steps;  // rows that a team does one after the other
  int lanes;
  int threads;
  bool held;    // packed, and few enough of them
  bool kept;    // not held, but in the memory that a block shares after the first pass
  bool packed;  // rows are whole packs, and aligned

  GRADLINT_BOTH int teams() const { return threads / lanes; }

  int64_t blocks() const {
    const int64_t each = steps * teams();
    return (rows + each - 1) / each;
  }

  // The team of this thread.
  GRADLINT_BOTH Team team(const Block& block) const {
    return {block.thread / lanes, block.thread % lanes, lanes, block.thread};
  }

  // The row that the team has at a step. The last teams of the last block may have none, from
  // `rows` on; they take part in reductions with rows of length 0.
  GRADLINT_BOTH int64_t row(const Block& block, const Team& team, int64_t step) const {
    return (block.index * steps + step) * teams() + team.index;
  }

  // Calls body(team, row, length) for each row of this thread's team.
  template <class Body>
  GRADLINT_BOTH void each_row(const Block& block, const Body& body) const {
    const Team own = team(block);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t at = row(block, own, step);
      body(own, at, at < rows ? length : 0);
    }
  }
};

template <class T>
bool packable(int64_t length, std::initializer_list<const void*> operands) {
  bool result = length % Pack<T>::size == 0;
  for (const void* operand : operands) {
    result = result && reinterpret_cast<uintptr_t>(operand) % alignof(Pack<T>) == 0;
  }
  return result;
}

// The plan for `rows` rows of `length` elements, in `operands`: rows, or what all rows share.
// Bodies that hold nothing take at most long_lanes lanes.
template <class T>
RowPlan plan_rows(int64_t rows, int64_t length, std::initializer_list<const void*> operands,
                  int lanes_at_most = most_lanes) {
  // Two packs in flight for a lane while a row takes less than a warp (heuristic), then as many
  // as it holds.
  int lanes = 1;
  const int warp = lanes_at_most < warp_size ? lanes_at_most : warp_size;
  while (lanes < warp && 2 * lanes * Pack<T>::size < length) lanes *= 2;
  const int most = held_lanes<T> < lanes_at_most ? held_lanes<T> : lanes_at_most;
  while (lanes < most && lanes * held_slots<T> < length) lanes *= 2;
  const bool packed = packable<T>(length, operands);
  const bool held = packed && length <= lanes * held_slots<T>;
  if (!held && lanes > long_lanes) lanes = long_lanes;
  RowPlan plan{};
  plan.rows = rows;
  plan.length = length;
  plan.lanes = lanes;
  plan.threads = lanes > row_threads ? lanes : row_threads;
  plan.held = held;
  plan.packed = packed;
#ifdef GRADLINT_DEVICE
  plan.steps = 1;
#else
  constexpr int64_t worthwhile = 8192;  // elements of a block, more than it costs to hand it out
  plan.steps = length < worthwhile ? worthwhile / (length + 1) + 1 : 1;
#endif
  return plan;
}

}  // namespace gradlint::GRADLINT_SPACE
