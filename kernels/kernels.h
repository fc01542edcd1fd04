// The entry points of all kernels, for the CPU (namespace cpu) and for CUDA (namespace cuda).
#pragma once

#include "common/arrays.h"

#define GRADLINT_ENTRY(name, ...)  \
  namespace gradlint::cpu {        \
  void name(__VA_ARGS__);          \
  }                                \
  namespace gradlint::cuda {       \
  void name(__VA_ARGS__);          \
  }

// y = f(x): (y; x), then (gx; g, x), then (gg, gx; c, g, x)
#define GRADLINT_POINTWISE_ENTRIES(name)                                                       \
  GRADLINT_ENTRY(name, const Context&, const Elements&, const Scalars&)                        \
  GRADLINT_ENTRY(name##_backward, const Context&, const Elements&, const Scalars&)             \
  GRADLINT_ENTRY(name##_backward_backward, const Context&, const Elements&, const Scalars&)

GRADLINT_POINTWISE_ENTRIES(square)
