// matmul: C = A·B, for each of a batch of matrices
// backward: gA = G·Bᵀ, gB = Aᵀ·G, which are products again; so is the double backward:
// with c the gradient of gA, G gets c·B and B gets cᵀ·G (of gB likewise), and so at every order.
//
// column_sum: s_j = Σ_i x_ij
// backward: gx_ij = g_j; double backward: with c the gradient of gx, g gets column_sum(c).
//
// linear: y = x·Wᵀ + b
// backward: gx = G·W, gW = Gᵀ·x, gb = column_sum(G)
// double backward: that of the two operators above, which the backward is made of.
//
// The derivatives of products: Giles, Collected Matrix Derivative Results for Forward and Reverse
// Mode Algorithmic Differentiation (2008), §2.2.1.
#include "common/matmul.h"
#include "common/running_sum.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

// partial[part, j] = Σ of x_ij over the rows i of the part. A block takes a group of neighbouring
// columns; its lanes take every so many rows each.
template <class T>
struct PartialColumnSum {
  using W = Wide<T>;
  static constexpr int threads = 256, most_threads = threads;
  static constexpr size_t memory = threads * sizeof(W);

  ColumnSum sum;
  int64_t part_rows;
  int width;  // columns of a block

  // No more than there are, but a power of two, up to a warp's threads.
  static int width_for(int64_t columns) {
    int width = 1;
    while (width < 32 && width < columns) width *= 2;
    return width;
  }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int lanes = threads / width;
    const int64_t groups = ceiling(sum.columns, width);
    const int64_t part = block.index / groups, column = (block.index - part * groups) * width;
    const int64_t first = part * part_rows;
    const int64_t last = first + part_rows < sum.rows ? first + part_rows : sum.rows;
    const T* x = static_cast<const T*>(sum.x.data);
    W* of_lanes = static_cast<W*>(block.memory);
    for (int e = block.thread; e < threads; e += block.threads) {
      const int64_t c = column + e % width;
      W own = 0;
      if (c < sum.columns) {
        own = sum_in_runs<W>(first + e / width, last, lanes, [&](int64_t row) {
          return widened(x[row * sum.x.row_stride + c * sum.x.column_stride]);
        });
      }
      of_lanes[e] = own;
    }
    block.sync();
    for (int e = block.thread; e < width && column + e < sum.columns; e += block.threads) {
      W total = 0;
      for (int lane = 0; lane < lanes; ++lane) total += of_lanes[lane * width + e];
      static_cast<W*>(sum.partial)[part * sum.columns + column + e] = total;
    }
  }
};

void matmul(const Context& context, const Product& product) { multiply(context, product); }

void column_sum(const Context& context, const ColumnSum& sum) {
  with_dtype(sum.dtype, [&](auto type) {
    using T = decltype(type);
    using Kernel = PartialColumnSum<T>;
    if (sum.parts > 0) {
      const int width = Kernel::width_for(sum.columns);
      launch(context, sum.parts * ceiling(sum.columns, width), Kernel::threads, Kernel::memory,
             Kernel{sum, ceiling(sum.rows, sum.parts), width});
    }
    join_parts<T>(context, {sum.partial, nullptr, sum.out, sum.parts, sum.columns, sum.columns});
  });
}

}  // namespace gradlint::GRADLINT_SPACE
