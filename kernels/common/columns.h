// Column by column: sums down the columns of a matrix, in two stages and in a fixed order.
//
// A block sums a stretch of rows of a tile of columns. Its partial sums are written to a
// workspace, and a second launch adds those up. Neighbouring threads have neighbouring columns.
#pragma once

#include "launch.h"
#include "total.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int column_threads = 256;
constexpr int total_threads = 1024;  // where a block has all rows: it must be quick with them
constexpr int owned_columns = 1;
#else
constexpr int column_threads = 1;
constexpr int total_threads = 1;
constexpr int owned_columns = 64;  // walked together, along the rows' memory
#endif

// How the matrix is spread over blocks.
struct ColumnPlan {
  int64_t rows;
  int64_t columns;
  int64_t stretch;  // rows of a block
  int64_t splits;   // stretches
  int threads;      // of a block, a power of two
  int lanes;        // threads side by side, a power of two

  GRADLINT_BOTH int teams() const { return threads / lanes; }
  GRADLINT_BOTH int width() const { return lanes * owned_columns; }
  GRADLINT_BOTH int64_t tiles() const { return (columns + width() - 1) / width(); }
};

// A plan for `rows` × `columns`. Where `whole`, each column is summed by one block.
inline ColumnPlan plan_columns(const Context& context, int64_t rows, int64_t columns, bool whole) {
  ColumnPlan plan{};
  plan.rows = rows;
  plan.columns = columns;
  plan.threads = whole ? total_threads : column_threads;
  plan.lanes = 1;
  while (plan.lanes < plan.threads && plan.lanes < warp_size && plan.width() < columns) {
    plan.lanes *= 2;
  }
  // Few enough rows for a second stage that costs little, enough blocks to fill the device.
  constexpr int64_t least = 64, most = 1024;  // rows of a thread (heuristic)
#ifdef GRADLINT_DEVICE
  constexpr int64_t waves = 8;  // blocks for each multiprocessor (heuristic)
  const int64_t tiles = plan.tiles() > 0 ? plan.tiles() : 1;
  const int64_t wanted = device::processors(context) * waves / tiles + 1;
  // Narrower tiles where all rows are a block's and there are processors left: 8 lanes still read
  // 32 bytes, a whole sector of the memory's.
  while (whole && plan.lanes > 8 && plan.tiles() < device::processors(context)) plan.lanes /= 2;
#else
  (void)context;
  const int64_t wanted = 1;
#endif
  const int64_t teams = plan.teams();
  int64_t stretch = (rows + wanted - 1) / wanted;
  if (stretch < least * teams) stretch = least * teams;
  if (stretch > most * teams) stretch = most * teams;
  plan.stretch = whole || stretch > rows ? rows : stretch;
  plan.splits = plan.stretch > 0 ? (rows + plan.stretch - 1) / plan.stretch : 1;
  return plan;
}

// For each stretch of rows and each column, the K sums of terms(first, row, column, out), where
// `first` is the first row of the stretch, are given to store(split, count, column, sums). Running
// is how a thread sums.
template <class W, int K, class Running, class Terms, class Store>
struct ColumnSums {
  // Only single sums are of whole columns.
  static constexpr int most_threads = K == 1 ? total_threads : column_threads;
  ColumnPlan plan;
  Terms terms;
  Store store;

  size_t memory() const { return sizeof(W) * K * plan.teams() * plan.width(); }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int lane = block.thread % plan.lanes, team = block.thread / plan.lanes;
    const int64_t tile = block.index % plan.tiles(), split = block.index / plan.tiles();
    const int64_t column = tile * plan.width() + int64_t{lane} * owned_columns;
    const int64_t left = plan.columns - column;
    const int owned = static_cast<int>(left < 0 ? 0 : left < owned_columns ? left : owned_columns);
    const int64_t first = split * plan.stretch;
    const int64_t last = first + plan.stretch < plan.rows ? first + plan.stretch : plan.rows;

    Running totals[K][owned_columns];
#ifdef __CUDACC__
#pragma unroll 4
#endif
    for (int64_t row = first + team; row < last; row += plan.teams()) {
      for (int c = 0; c < owned; ++c) {
        W out[K];
        terms(first, row, column + c, out);
        for (int k = 0; k < K; ++k) totals[k][c].add(out[k]);
      }
    }

    // [team][k][lane][c]
    const int64_t plane = int64_t{plan.lanes} * owned_columns, whole = K * plane;
    W* const mine = static_cast<W*>(block.memory) + team * whole + lane * owned_columns;
    for (int k = 0; k < K; ++k) {
      for (int c = 0; c < owned; ++c) mine[k * plane + c] = totals[k][c].value();
    }
    for (int half = plan.teams() / 2; half > 0; half /= 2) {
      block.sync();
      if (team >= half) continue;
      for (int k = 0; k < K; ++k) {
        for (int c = 0; c < owned; ++c) mine[k * plane + c] += mine[half * whole + k * plane + c];
      }
    }
    if (team > 0) return;
    for (int c = 0; c < owned; ++c) {
      W sums[K];
      for (int k = 0; k < K; ++k) sums[k] = mine[k * plane + c];
      store(split, last - first, column + c, sums);
    }
  }
};

template <class W, int K, class Running = Total<W>, class Terms, class Store>
void launch_columns(const Context& context, const ColumnPlan& plan, const Terms& terms,
                    const Store& store) {
  const ColumnSums<W, K, Running, Terms, Store> body{plan, terms, store};
  launch(context, plan.tiles() * plan.splits, plan.threads, body.memory(), body);
}

// Partial sums in the workspace: [split][k][column].
template <class W, int K>
struct StorePartials {
  W* workspace;
  int64_t columns;

  GRADLINT_BOTH void operator()(int64_t split, int64_t, int64_t column, const W (&sums)[K]) const {
    for (int k = 0; k < K; ++k) workspace[(split * K + k) * columns + column] = sums[k];
  }
};

// The sums of [split][k][column] are those of a matrix of K·columns columns.
template <class W>
struct PartialTerms {
  const W* workspace;
  int64_t columns;

  GRADLINT_BOTH void operator()(int64_t, int64_t split, int64_t column, W (&out)[1]) const {
    out[0] = workspace[split * columns + column];
  }
};

// Columns of the first output, then of the second; null ones are left out.
template <class T>
struct StoreColumns {
  T *first, *second;
  int64_t columns;

  GRADLINT_BOTH void operator()(int64_t, int64_t, int64_t column, const Wide<T> (&sums)[1]) const {
    T* const output = column < columns ? first : second;
    if (output == nullptr) return;
    output[column < columns ? column : column - columns] = narrowed<T>(sums[0]);
  }
};

// first[column], second[column] = Σ over `splits` pairs of partial sums in the workspace
template <class T>
void total_columns(const Context& context, int64_t splits, int64_t columns,
                   const Wide<T>* workspace, T* first, T* second) {
  launch_columns<Wide<T>, 1>(context, plan_columns(context, splits, 2 * columns, true),
                             PartialTerms<Wide<T>>{workspace, 2 * columns},
                             StoreColumns<T>{first, second, columns});
}

}  // namespace gradlint::GRADLINT_SPACE
