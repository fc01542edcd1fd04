// Boxes of RoI align: bins and samples along an axis, and what a sample reads. The formulas
// stand in roi_align.cu.
#pragma once

#include <limits>

#include "functions.h"
#include "roi.h"

namespace gradlint::GRADLINT_SPACE {

// The indices in [0, count) that may matter for an interval.
struct Span {
  int64_t first, last;
};

// Neighbours i, i + 1, … of `step` each, from `origin` on: those that meet [lowest, highest].
// One more on either side, so that no rounding loses one.
template <class W>
GRADLINT_BOTH Span span(W origin, W step, W count, W lowest, W highest) {
  constexpr W epsilon = std::numeric_limits<W>::epsilon();
  constexpr W most = 4e18;  // a whole number of 64 bits
  W first = 0, last = count;
  if (step != 0) {
    const W a = (lowest - origin) / step, b = (highest - origin) / step;
    const W below = a < b ? a : b, above = a < b ? b : a;
    first = math::floor(below - 1 - 4 * epsilon * math::fabs(below));
    last = math::floor(above + 2 + 4 * epsilon * math::fabs(above));
  }
  const W bound = count < most ? count : most;
  first = first > 0 ? (first < bound ? first : bound) : 0;
  last = last > 0 ? (last < bound ? last : bound) : 0;
  return {static_cast<int64_t>(first), static_cast<int64_t>(last)};
}

// Where a sample reads along an axis, and with which weights.
template <class W>
struct Taps {
  int64_t low, high;
  W weight_low, weight_high;  // both 0 where the sample is outside

  GRADLINT_BOTH bool inside() const { return weight_low + weight_high > 0; }

  GRADLINT_BOTH W weight(int64_t pixel) const {
    return (low == pixel ? weight_low : 0) + (high == pixel ? weight_high : 0);
  }
};

// One axis of a box: its bins and their samples, in pixels.
template <class W>
struct RoiAxis {
  W start, bin, bins;
  W samples;  // of a bin
  int64_t size;  // of the image

  GRADLINT_BOTH RoiAxis(const RoiAlign& roi, W low, W high, int64_t pooled, int64_t pixels)
      : bins(static_cast<W>(pooled)), size(pixels) {
    const W scale = static_cast<W>(roi.spatial_scale), offset = roi.aligned ? W(0.5) : W(0);
    start = low * scale - offset;
    W length = high * scale - offset - start;
    if (!roi.aligned && length < 1) length = 1;
    bin = length / bins;
    samples = static_cast<W>(roi.sampling_ratio);
    if (roi.sampling_ratio == 0) samples = bin > 0 ? -math::floor(-bin) : 0;
  }

  GRADLINT_BOTH bool finite() const { return start - start == 0 && bin - bin == 0; }

  GRADLINT_BOTH Span samples_in(int64_t index, W lowest, W highest) const {
    return span(start + index * bin, bin / samples, samples, lowest, highest);
  }

  GRADLINT_BOTH Taps<W> taps(int64_t index, int64_t sample) const {
    W at = start + index * bin + (sample + W(0.5)) * bin / samples;
    if (!(at >= -1 && at <= size) || size == 0) return {0, 0, 0, 0};
    if (at < 0) at = 0;
    const int64_t low = static_cast<int64_t>(at);
    if (low >= size - 1) return {size - 1, size - 1, 1, 0};
    const W part = at - low;
    return {low, low + 1, 1 - part, part};
  }

  // Σ over the samples of the bin of their weights for `pixel`.
  GRADLINT_BOTH W weight(int64_t index, int64_t pixel) const {
    const Span near = samples_in(index, reach_low(pixel), reach_high(pixel));
    W total = 0;
    for (int64_t i = near.first; i < near.last; ++i) total += taps(index, i).weight(pixel);
    return total;
  }

  GRADLINT_BOTH Span bins_near(int64_t pixel) const {
    return span(start, bin, bins, reach_low(pixel), reach_high(pixel));
  }

  // Whether a sample may read one of the pixels in [first, last].
  GRADLINT_BOTH bool touches(int64_t first, int64_t last) const {
    const Span near = span(start, bin, bins, reach_low(first), reach_high(last));
    return samples > 0 && near.first < near.last;
  }

 private:
  // Where the samples lie that read a pixel; those at a border are read from beyond it.
  GRADLINT_BOTH W reach_low(int64_t pixel) const { return static_cast<W>(pixel - 1); }
  GRADLINT_BOTH W reach_high(int64_t pixel) const { return static_cast<W>(pixel + 1); }
};

template <class T>
struct RoiBox {
  using W = Wide<T>;
  int64_t image;  // -1: none
  RoiAxis<W> y, x;

  GRADLINT_BOTH RoiBox(const RoiAlign& roi, const T* boxes, int64_t index)
      : image(-1),
        y(roi, widened(boxes[5 * index + 2]), widened(boxes[5 * index + 4]), roi.pooled_height,
          roi.height),
        x(roi, widened(boxes[5 * index + 1]), widened(boxes[5 * index + 3]), roi.pooled_width,
          roi.width) {
    const W number = widened(boxes[5 * index]);
    if (number >= 0 && number < roi.images && math::floor(number) == number && y.finite() &&
        x.finite()) {
      image = static_cast<int64_t>(number);
    }
  }

  // What the mean of a bin divides by.
  GRADLINT_BOTH W count() const {
    const W all = y.samples * x.samples;
    return all > 1 ? all : 1;
  }
};

}  // namespace gradlint::GRADLINT_SPACE
