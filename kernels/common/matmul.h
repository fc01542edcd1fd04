// Products of matrices in tiles: a block loads a panel of each factor into its memory, and each
// of its threads multiplies from there for a small patch of the result, which it keeps in
// registers. One thread alone makes all patches of the tile, with the panels in the cache.
//
// The scheme: Goto & van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008), §4-5.
#pragma once

#include "dtypes.h"
#include "launch.h"
#include "matrices.h"
#include "running_sum.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
struct Tiling {
  static constexpr int threads = 128;
  static constexpr int depth = 16;  // of a panel
  static constexpr int patch_rows = 8;
  static constexpr int patch_columns = 4;
  static constexpr int padding = 4;  // spreads a column over banks, and keeps 16-byte alignment
};
#else
struct Tiling {
  static constexpr int threads = 1;
  static constexpr int depth = 32;
  static constexpr int patch_rows = 1;
  static constexpr int patch_columns = tile_columns;
  static constexpr int padding = 0;
};
#endif

template <class T>
class TiledProduct {
 public:
  static constexpr int most_threads = Tiling::threads;
  using W = Wide<T>;

  static constexpr int row_pitch = tile_rows + Tiling::padding;
  static constexpr int column_pitch = tile_columns + Tiling::padding;
  static constexpr size_t memory = Tiling::depth * (row_pitch + column_pitch) * sizeof(W);

  explicit TiledProduct(const Product& product)
      : product_(product),
        row_tiles_(ceiling(product.rows, tile_rows)),
        column_tiles_(ceiling(product.columns, tile_columns)),
        part_inner_(ceiling(product.inner, product.parts * Tiling::depth) * Tiling::depth) {}

  int64_t blocks() const { return product_.parts * product_.batch * row_tiles_ * column_tiles_; }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t above = block.index / column_tiles_, higher = above / row_tiles_;
    const int64_t column = (block.index - above * column_tiles_) * tile_columns;
    const int64_t row = (above - higher * row_tiles_) * tile_rows;
    const int64_t part = higher / product_.batch, batch = higher - part * product_.batch;
    const int64_t first = part * part_inner_;
    const int64_t last = least(first + part_inner_, product_.inner);
    const T* a = static_cast<const T*>(product_.a.data) + batch * product_.a.batch_stride +
                 row * product_.a.row_stride;
    const T* b = static_cast<const T*>(product_.b.data) + batch * product_.b.batch_stride +
                 column * product_.b.column_stride;
    W* a_panel = static_cast<W*>(block.memory);
    W* b_panel = a_panel + Tiling::depth * row_pitch;

    W totals[patches][Tiling::patch_rows][Tiling::patch_columns] = {};
    for (int64_t start = first; start < last; start += run) {
      W sums[patches][Tiling::patch_rows][Tiling::patch_columns] = {};
      const int64_t stop = least(start + run, last);
      for (int64_t k = start; k < stop; k += Tiling::depth) {
        load<tile_rows, row_pitch>(block, a_panel, a + k * product_.a.column_stride,
                                   product_.a.row_stride, product_.a.column_stride,
                                   product_.rows - row, stop - k);
        load<tile_columns, column_pitch>(block, b_panel, b + k * product_.b.row_stride,
                                         product_.b.column_stride, product_.b.row_stride,
                                         product_.columns - column, stop - k);
        block.sync();
        multiply(block, a_panel, b_panel, sums);
        block.sync();  // the panels have been read
      }
      add(sums, totals);
    }
    store(block, totals, part, batch, row, column);
  }

 private:
  static constexpr int patches_across = tile_columns / Tiling::patch_columns;
  static constexpr int patches =
      tile_rows / Tiling::patch_rows * patches_across / Tiling::threads;  // of one thread
  static constexpr int64_t run = 256;  // terms that are added up before they join the total

  static_assert(patches * Tiling::threads * Tiling::patch_rows * Tiling::patch_columns ==
                tile_rows * tile_columns);
  static_assert(run % Tiling::depth == 0);

  static GRADLINT_BOTH int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

  // panel[k·pitch + i] = from[i·stride + k·depth_stride], zero from `count` and `depth` on.
  // Neighbouring threads read along the axis with the smaller stride.
  template <int extent, int pitch>
  static GRADLINT_BOTH void load(const Block& block, W* panel, const T* from, int64_t stride,
                                 int64_t depth_stride, int64_t count, int64_t depth) {
    constexpr int size = extent * Tiling::depth;
    if (depth_stride < stride) {
      for (int e = block.thread; e < size; e += Tiling::threads) {
        const int i = e / Tiling::depth, k = e % Tiling::depth;
        panel[k * pitch + i] =
            i < count && k < depth ? widened(from[i * stride + k * depth_stride]) : W(0);
      }
    } else {
      for (int e = block.thread; e < size; e += Tiling::threads) {
        const int i = e % extent, k = e / extent;
        panel[k * pitch + i] =
            i < count && k < depth ? widened(from[i * stride + k * depth_stride]) : W(0);
      }
    }
  }

  static GRADLINT_BOTH int patch_row(const Block& block, int patch) {
    return (block.thread + patch * Tiling::threads) / patches_across * Tiling::patch_rows;
  }

  static GRADLINT_BOTH int patch_column(const Block& block, int patch) {
    return (block.thread + patch * Tiling::threads) % patches_across * Tiling::patch_columns;
  }

  using Patches = W[patches][Tiling::patch_rows][Tiling::patch_columns];

  static GRADLINT_BOTH void multiply(const Block& block, const W* a_panel, const W* b_panel,
                                     Patches& sums) {
    for (int patch = 0; patch < patches; ++patch) {
      const W* a = a_panel + patch_row(block, patch);
      const W* b = b_panel + patch_column(block, patch);
      W own[Tiling::patch_rows][Tiling::patch_columns];
      for (int i = 0; i < Tiling::patch_rows; ++i) {
        for (int j = 0; j < Tiling::patch_columns; ++j) own[i][j] = sums[patch][i][j];
      }
      GRADLINT_UNROLLED for (int k = 0; k < Tiling::depth; ++k) {
        for (int i = 0; i < Tiling::patch_rows; ++i) {
          for (int j = 0; j < Tiling::patch_columns; ++j) {
            own[i][j] += a[k * row_pitch + i] * b[k * column_pitch + j];
          }
        }
      }
      for (int i = 0; i < Tiling::patch_rows; ++i) {
        for (int j = 0; j < Tiling::patch_columns; ++j) sums[patch][i][j] = own[i][j];
      }
    }
  }

  static GRADLINT_BOTH void add(const Patches& sums, Patches& totals) {
    for (int patch = 0; patch < patches; ++patch) {
      for (int i = 0; i < Tiling::patch_rows; ++i) {
        for (int j = 0; j < Tiling::patch_columns; ++j) totals[patch][i][j] += sums[patch][i][j];
      }
    }
  }

  GRADLINT_BOTH void store(const Block& block, const Patches& totals, int64_t part, int64_t batch,
                           int64_t row, int64_t column) const {
    for (int patch = 0; patch < patches; ++patch) {
      for (int i = 0; i < Tiling::patch_rows; ++i) {
        const int64_t r = row + patch_row(block, patch) + i;
        if (r >= product_.rows) break;
        for (int j = 0; j < Tiling::patch_columns; ++j) {
          const int64_t c = column + patch_column(block, patch) + j;
          if (c >= product_.columns) break;
          const int64_t position = (batch * product_.rows + r) * product_.columns + c;
          W total = totals[patch][i][j];
          if (product_.parts > 1) {
            const int64_t size = product_.batch * product_.rows * product_.columns;
            static_cast<W*>(product_.partial)[part * size + position] = total;
          } else {
            if (product_.bias) total += widened(static_cast<const T*>(product_.bias)[c]);
            static_cast<T*>(product_.out)[position] = narrowed<T>(total);
          }
        }
      }
    }
  }

  Product product_;
  int64_t row_tiles_, column_tiles_, part_inner_;
};

// out[i] = Σ_part partial[part, i] (+ bias[i mod columns])
template <class T>
struct JoinedParts {
  static constexpr int64_t chunk = 256;
  static constexpr int most_threads = chunk;

  const void* partial;
  const void* bias;
  void* out;
  int64_t parts;
  int64_t count;
  int64_t columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    using W = Wide<T>;
    const int64_t first = block.index * chunk;
    const int64_t last = first + chunk < count ? first + chunk : count;
    for (int64_t i = first + block.thread; i < last; i += block.threads) {
      W total = sum_in_runs<W>(0, parts, 1, [&](int64_t part) {
        return static_cast<const W*>(partial)[part * count + i];
      });
      if (bias) total += widened(static_cast<const T*>(bias)[i % columns]);
      static_cast<T*>(out)[i] = narrowed<T>(total);
    }
  }
};

template <class T>
void join_parts(const Context& context, const JoinedParts<T>& joined) {
  constexpr int64_t chunk = JoinedParts<T>::chunk;
  launch(context, ceiling(joined.count, chunk), static_cast<int>(chunk), 0, joined);
}

inline void multiply(const Context& context, const Product& product) {
  with_dtype(product.dtype, [&](auto type) {
    using T = decltype(type);
    const TiledProduct<T> body(product);
    launch(context, body.blocks(), Tiling::threads, TiledProduct<T>::memory, body);
    if (product.parts > 1) {
      const int64_t count = product.batch * product.rows * product.columns;
      join_parts<T>(context, {product.partial, product.bias, product.out, product.parts, count,
                              product.columns});
    }
  });
}

}  // namespace gradlint::GRADLINT_SPACE
