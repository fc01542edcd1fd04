// What a product of matrices is given, and into how many parts it is cut.
#pragma once

#include "arrays.h"
#include "target.h"

namespace gradlint {

// A batch of matrices of any strides, in elements.
struct Matrices {
  const void* data;
  int64_t batch_stride;
  int64_t row_stride;
  int64_t column_stride;
};

// A block of threads makes a tile of this many rows and columns of the result.
constexpr int tile_rows = 64;
constexpr int tile_columns = 64;

// out = a·b + bias for each of `batch` pairs: (rows, inner)·(inner, columns). `out` is dense.
struct Product {
  Dtype dtype;
  int64_t batch;
  int64_t rows;
  int64_t inner;
  int64_t columns;
  Matrices a;
  Matrices b;
  const void* bias;  // one number a column, dense; may be null
  void* out;
  int64_t parts;  // of the sum over `inner`
  void* partial;  // parts·batch·rows·columns numbers of the wide type, where parts > 1
};

// The sums over the rows of x (rows, columns), of any strides.
struct ColumnSum {
  Dtype dtype;
  int64_t rows;
  int64_t columns;
  Matrices x;  // one
  void* out;
  int64_t parts;
  void* partial;  // parts·columns numbers of the wide type
};

GRADLINT_BOTH int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Few tiles with long sums, such as the gradient of a weight, are cut into parts so that there are
// enough blocks for a device. The number does not depend on the device: nor does the result.
inline int64_t product_parts(int64_t batch, int64_t rows, int64_t inner, int64_t columns) {
  constexpr int64_t enough_blocks = 256;  // (heuristic: two for each multiprocessor of a large GPU)
  constexpr int64_t least_inner = 512;    // (heuristic: a shorter part costs more than it gains)
  const int64_t tiles = batch * ceiling(rows, tile_rows) * ceiling(columns, tile_columns);
  if (tiles == 0 || tiles >= enough_blocks) return 1;
  const int64_t wanted = ceiling(enough_blocks, tiles), possible = inner / least_inner;
  if (possible <= 1) return 1;
  return wanted < possible ? wanted : possible;
}

inline int64_t column_sum_parts(int64_t rows) {
  constexpr int64_t part_rows = 512;  // (heuristic: 64 for each of eight lanes of a block)
  constexpr int64_t most = 1024;      // the parts are added up by one thread a column
  const int64_t parts = ceiling(rows, part_rows);
  return parts < most ? parts : most;
}

}  // namespace gradlint
