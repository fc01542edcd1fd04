// roi_align: a box is cut into pooled_height × pooled_width bins, a bin samples the image at n_y
// × n_x points at the same distances, by bilinear interpolation, and gives their mean:
//   y[k, c, p, q] = 1/(n_y·n_x) Σ_i Σ_j Σ_r Σ_s w_H(y_pi, r) · w_W(x_qj, s) · input[b_k, c, r, s]
//   y_pi = y₁ + (p + (i + ½)/n_y)·h,   h = (y₂ − y₁)/pooled_height, and so for x
// with box coordinates times spatial_scale, less ½ where `aligned` (pixels are centred on whole
// numbers); n_y is the sampling ratio or, where that is 0, ⌈h⌉. Without `aligned` a box has at
// least the size of a pixel. w_H(t, r) = max(0, 1 − |t' − r|), with t' = t brought into
// [0, H − 1]; it is 0 for t outside [−1, H]. A bin without samples gives 0.
// backward: g_input[b, c, r, s] = Σ_k Σ_p Σ_q (1/(n_y·n_x) Σ_i w_H(y_pi, r) Σ_j w_W(x_qj, s))
//   · g[k, c, p, q], over the boxes k of image b
// Each element gathers its own sum, in the order of the boxes: there is nothing to race for.
// There is no double backward: the operator is differentiable once. Boxes have no gradient.
// A box that is not finite, or of no image, gives NaN and has no part in the gradient.
//
// He, Gkioxari, Dollár & Girshick, Mask R-CNN (2017), §3.
#include "common/dtypes.h"
#include "common/launch.h"
#include "common/roi_box.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct RoiForward {
  using W = Wide<T>;
  static constexpr int threads = 256, most_threads = threads;

  RoiAlign roi;
  const T* input;
  const T* boxes;
  T* output;

  GRADLINT_BOTH int64_t count() const {
    return roi.boxes * roi.channels * roi.pooled_height * roi.pooled_width;
  }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * threads;
    const int64_t last = first + threads < count() ? first + threads : count();
    for (int64_t i = first + block.thread; i < last; i += block.threads) {
      const int64_t row = i / roi.pooled_width, plane = row / roi.pooled_height;
      output[i] = narrowed<T>(
          value(plane, row - plane * roi.pooled_height, i - row * roi.pooled_width));
    }
  }

 private:
  GRADLINT_BOTH W value(int64_t plane, int64_t p, int64_t q) const {
    constexpr W undefined = std::numeric_limits<W>::quiet_NaN();
    const int64_t index = plane / roi.channels, channel = plane - index * roi.channels;
    const RoiBox<T> box(roi, boxes, index);
    if (box.image < 0) return undefined;
    const T* image = input + (box.image * roi.channels + channel) * roi.height * roi.width;
    const Span rows = box.y.samples_in(p, -1, static_cast<W>(roi.height));
    const Span columns = box.x.samples_in(q, -1, static_cast<W>(roi.width));
    W total = 0;
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const Taps<W> y = box.y.taps(p, i);
      if (!y.inside()) continue;
      W along = 0;
      for (int64_t j = columns.first; j < columns.last; ++j) {
        const Taps<W> x = box.x.taps(q, j);
        if (!x.inside()) continue;
        along += math::vanishing(y.weight_low, between(x, image + y.low * roi.width)) +
                 math::vanishing(y.weight_high, between(x, image + y.high * roi.width));
      }
      total += along;
    }
    return total / box.count();
  }

  static GRADLINT_BOTH W between(const Taps<W>& x, const T* row) {
    return math::vanishing(x.weight_low, widened(row[x.low])) +
           math::vanishing(x.weight_high, widened(row[x.high]));
  }
};

// The pixels [top, bottom] × [left, right] of a tile.
struct RoiTile {
  int64_t top, bottom, left, right;

  GRADLINT_BOTH RoiTile(const RoiAlign& roi, int64_t index) {
    const int64_t across = roi.tiles_across();
    top = index / across * roi_tile_rows;
    left = index % across * roi_tile_columns;
    bottom = top + roi_tile_rows < roi.height ? top + roi_tile_rows - 1 : roi.height - 1;
    right = left + roi_tile_columns < roi.width ? left + roi_tile_columns - 1 : roi.width - 1;
  }
};

// Which boxes may touch which tile: a bit each, so that the gradient looks at few of them.
template <class T>
struct RoiTouching {
  static constexpr int threads = 128, most_threads = threads;

  RoiAlign roi;
  const T* boxes;

  GRADLINT_BOTH int64_t count() const { return roi.images * roi.tiles() * roi.words(); }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * threads;
    const int64_t last = first + threads < count() ? first + threads : count();
    for (int64_t i = first + block.thread; i < last; i += block.threads) {
      const int64_t above = i / roi.words(), image = above / roi.tiles();
      const RoiTile tile(roi, above - image * roi.tiles());
      const int64_t start = (i - above * roi.words()) * roi_word;
      uint32_t word = 0;
      for (int bit = 0; bit < roi_word && start + bit < roi.boxes; ++bit) {
        const RoiBox<T> box(roi, boxes, start + bit);
        if (box.image == image && box.y.touches(tile.top, tile.bottom) &&
            box.x.touches(tile.left, tile.right)) {
          word |= uint32_t{1} << bit;
        }
      }
      roi.touching[i] = word;
    }
  }
};

// A block makes one tile of the gradient in several channels; a thread goes with a pixel.
template <class T>
struct RoiBackward {
  using W = Wide<T>;
  static constexpr int threads = roi_tile_rows * roi_tile_columns, most_threads = threads;
  static constexpr int together = 8;  // channels, for which the weights are computed once

  RoiAlign roi;
  const T* grad_output;
  const T* boxes;
  T* grad_input;

  GRADLINT_BOTH int64_t groups() const { return (roi.channels + together - 1) / together; }

  GRADLINT_BOTH int64_t blocks() const { return roi.images * groups() * roi.tiles(); }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t above = block.index / roi.tiles(), image = above / groups();
    const int64_t index = block.index - above * roi.tiles();
    const int64_t channel = (above - image * groups()) * together;
    const int64_t left = roi.channels - channel;
    const int channels = left < together ? static_cast<int>(left) : together;
    const uint32_t* touching = roi.touching + (image * roi.tiles() + index) * roi.words();
    const RoiTile tile(roi, index);
    for (int e = block.thread; e < threads; e += block.threads) {
      const int64_t y = tile.top + e / roi_tile_columns, x = tile.left + e % roi_tile_columns;
      if (y > tile.bottom || x > tile.right) continue;
      W totals[together] = {};
      for (int64_t word = 0; word < roi.words(); ++word) {
        uint32_t bits = touching[word];
        for (int64_t box = word * roi_word; bits != 0; ++box, bits >>= 1) {
          if (bits & 1) gather(box, channel, channels, y, x, totals);
        }
      }
      T* plane = grad_input + (image * roi.channels + channel) * roi.height * roi.width;
      GRADLINT_UNROLLED for (int c = 0; c < together; ++c) {
        if (c < channels) {
          plane[(c * roi.height + y) * roi.width + x] = narrowed<T>(totals[c]);
        }
      }
    }
  }

 private:
  // Adds to `totals` what the bins of one box give to a pixel.
  GRADLINT_BOTH void gather(int64_t index, int64_t channel, int channels, int64_t y, int64_t x,
                            W (&totals)[together]) const {
    const RoiBox<T> box(roi, boxes, index);
    const Span rows = box.y.bins_near(y), columns = box.x.bins_near(x);
    const int64_t bins = roi.pooled_height * roi.pooled_width;
    const T* of_box = grad_output + (index * roi.channels + channel) * bins;
    for (int64_t p = rows.first; p < rows.last; ++p) {
      const W along = box.y.weight(p, y) / box.count();
      if (along == 0) continue;
      for (int64_t q = columns.first; q < columns.last; ++q) {
        const W weight = along * box.x.weight(q, x);
        if (weight == 0) continue;
        const T* g = of_box + p * roi.pooled_width + q;
        GRADLINT_UNROLLED for (int c = 0; c < together; ++c) {
          if (c < channels) totals[c] += weight * widened(g[c * bins]);
        }
      }
    }
  }
};

void roi_align(const Context& context, const RoiAlign& roi, const void* input, const void* boxes,
               void* output) {
  with_dtype(roi.dtype, [&](auto type) {
    using T = decltype(type);
    using Kernel = RoiForward<T>;
    const Kernel body{roi, static_cast<const T*>(input), static_cast<const T*>(boxes),
                      static_cast<T*>(output)};
    launch(context, (body.count() + Kernel::threads - 1) / Kernel::threads, Kernel::threads, 0,
           body);
  });
}

void roi_align_backward(const Context& context, const RoiAlign& roi, const void* grad_output,
                        const void* boxes, void* grad_input) {
  with_dtype(roi.dtype, [&](auto type) {
    using T = decltype(type);
    using Touching = RoiTouching<T>;
    const Touching touching{roi, static_cast<const T*>(boxes)};
    launch(context, (touching.count() + Touching::threads - 1) / Touching::threads,
           Touching::threads, 0, touching);
    const RoiBackward<T> body{roi, static_cast<const T*>(grad_output),
                              static_cast<const T*>(boxes), static_cast<T*>(grad_input)};
    launch(context, body.blocks(), RoiBackward<T>::threads, 0, body);
  });
}

}  // namespace gradlint::GRADLINT_SPACE
