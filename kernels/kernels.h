// The entry points of all kernels, for the CPU (namespace cpu) and for CUDA (namespace cuda).
#pragma once

#include "common/arrays.h"
#include "common/row_arguments.h"
#include "common/matrices.h"
#include "common/roi.h"
#include "common/scores.h"

#define GRADLINT_ENTRY(name, ...)  \
  namespace gradlint::cpu {        \
  void name(__VA_ARGS__);          \
  }                                \
  namespace gradlint::cuda {       \
  void name(__VA_ARGS__);          \
  }

// Element by element: the outputs, then the inputs.
#define GRADLINT_MAPPED_ENTRY(name) \
  GRADLINT_ENTRY(name, const Context&, const Elements&, const Scalars&)

// y = f(x): (y; x), then (gx; g, x)
#define GRADLINT_PIECEWISE_ENTRIES(name) \
  GRADLINT_MAPPED_ENTRY(name)            \
  GRADLINT_MAPPED_ENTRY(name##_backward)

// y = f(x): (y; x), then (gx; g, x), then (gg, gx; c, g, x)
#define GRADLINT_SMOOTH_ENTRIES(name) \
  GRADLINT_PIECEWISE_ENTRIES(name)    \
  GRADLINT_MAPPED_ENTRY(name##_backward_backward)

GRADLINT_SMOOTH_ENTRIES(square)
GRADLINT_SMOOTH_ENTRIES(exp)
GRADLINT_SMOOTH_ENTRIES(scaled_sigmoid)
GRADLINT_SMOOTH_ENTRIES(gelu)
GRADLINT_SMOOTH_ENTRIES(silu)
GRADLINT_PIECEWISE_ENTRIES(relu)
GRADLINT_PIECEWISE_ENTRIES(clipped_relu)
GRADLINT_PIECEWISE_ENTRIES(soft_threshold)
GRADLINT_PIECEWISE_ENTRIES(sign_ste)

GRADLINT_MAPPED_ENTRY(scale)  // (y; x)
GRADLINT_ENTRY(add_relu, const Context&, const Elements&)  // (z; x, y)

// (x, weight), memory for sum_blocks partial sums, the sum; then (product; g, factor)
GRADLINT_ENTRY(weighted_sum, const Context&, const Elements&, double* partials, void* sum)
GRADLINT_ENTRY(weighted_sum_backward, const Context&, const Elements&)

// linear: matrix products and sums over rows
GRADLINT_ENTRY(matmul, const Context&, const Product&)
GRADLINT_ENTRY(column_sum, const Context&, const ColumnSum&)

// attention: (x; p), (g, p; gx), (c, g, p; gg, gp)
GRADLINT_ENTRY(masked_softmax, const Context&, const Scores&, const void*, void*)
GRADLINT_ENTRY(masked_softmax_backward, const Context&, const Scores&, const void*, const void*,
               void*)
GRADLINT_ENTRY(masked_softmax_backward_backward, const Context&, const Scores&, const void*,
               const void*, const void*, void*, void*)

// roi_align: (input, boxes; output), (grad_output, boxes; grad_input)
GRADLINT_ENTRY(roi_align, const Context&, const RoiAlign&, const void*, const void*, void*)
GRADLINT_ENTRY(roi_align_backward, const Context&, const RoiAlign&, const void*, const void*,
               void*)

GRADLINT_ENTRY(layer_norm_forward, const Context&, const LayerNormArguments&)
GRADLINT_ENTRY(layer_norm_workspace, const Context&, const LayerNormArguments&, int64_t& elements)
GRADLINT_ENTRY(layer_norm_backward, const Context&, const LayerNormArguments&)
GRADLINT_ENTRY(layer_norm_backward_backward, const Context&, const LayerNormArguments&)

// (y; logits, noise), then (gx; g, y), then (gg, gy; c, g, y)
GRADLINT_ENTRY(gumbel_softmax, const Context&, const TemperatureArguments&)
GRADLINT_ENTRY(gumbel_softmax_backward, const Context&, const TemperatureArguments&)
GRADLINT_ENTRY(gumbel_softmax_backward_backward, const Context&, const TemperatureArguments&)

// (y; x), then (gx; g, x)
GRADLINT_ENTRY(soft_rank, const Context&, const TemperatureArguments&)
GRADLINT_ENTRY(soft_rank_backward, const Context&, const TemperatureArguments&)

GRADLINT_ENTRY(batch_norm_forward, const Context&, const BatchNormArguments&)
GRADLINT_ENTRY(batch_norm_workspace, const Context&, const BatchNormArguments&, int terms,
               int64_t& elements)
GRADLINT_ENTRY(batch_norm_backward, const Context&, const BatchNormArguments&)
GRADLINT_ENTRY(batch_norm_backward_backward, const Context&, const BatchNormArguments&)
