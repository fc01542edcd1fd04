// What the kernels of RoI align are given.
#pragma once

#include "arrays.h"
#include "target.h"

namespace gradlint {

// The backward pass makes the gradient in tiles of this many rows and columns.
constexpr int roi_tile_rows = 8;
constexpr int roi_tile_columns = 32;

// Boxes of one word of the backward pass's table of which boxes touch which tile.
constexpr int roi_word = 32;

// input: (images, channels, height, width), dense; boxes: (boxes, 5), dense, each the number of an
// image, then x and y of two corners; output: (boxes, channels, pooled_height, pooled_width).
struct RoiAlign {
  Dtype dtype;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t boxes;
  int64_t pooled_height;
  int64_t pooled_width;
  int64_t sampling_ratio;  // samples of a bin along an axis; 0: as many as it has pixels
  double spatial_scale;
  bool aligned;
  uint32_t* touching;  // backward: roi_tiles·roi_words bits for each image

  GRADLINT_BOTH int64_t tiles_across() const {
    return (width + roi_tile_columns - 1) / roi_tile_columns;
  }

  GRADLINT_BOTH int64_t tiles() const {
    return (height + roi_tile_rows - 1) / roi_tile_rows * tiles_across();
  }

  GRADLINT_BOTH int64_t words() const { return (boxes + roi_word - 1) / roi_word; }
};

}  // namespace gradlint
