// What the kernels of a masked softmax over rows are given.
#pragma once

#include "arrays.h"

namespace gradlint {

// Dense (batch, rows, columns) of float32 or float64.
struct Scores {
  Dtype dtype;
  int64_t batch;
  int64_t rows;
  int64_t columns;
  double scale;
  const bool* mask;  // of that shape and of any strides; null: all may be looked at
  int64_t mask_strides[3];
};

}  // namespace gradlint
