// An operator y = f(x) of one tensor, given by f, f′ and f″.
#pragma once

#include "map.h"

namespace gradlint {

// y = f(x)
template <class F>
struct PointwiseForward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[1], W (&out)[1]) const {
    out[0] = f.value(in[0]);
  }
};

// gx = g·f′(x), from (g, x)
template <class F>
struct PointwiseBackward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[2], W (&out)[1]) const {
    out[0] = in[0] * f.slope(in[1]);
  }
};

// With c the gradient of gx: g gets c·f′(x), x gets c·g·f″(x), from (c, g, x)
template <class F>
struct PointwiseBackwardBackward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[3], W (&out)[2]) const {
    out[0] = in[0] * f.slope(in[2]);
    out[1] = in[0] * in[1] * f.curvature(in[2]);
  }
};

}  // namespace gradlint

// Defines the entry points of the operator `name`, declared in kernels.h, of the functor F,
// which is made of the operator's scalars.
#define GRADLINT_POINTWISE(name, F)                                                              \
  namespace gradlint::GRADLINT_SPACE {                                                           \
  void name(const Context& context, const Elements& elements, const Scalars& scalars) {          \
    map<1, 1>(context, elements, PointwiseForward<F>{F{scalars}});                               \
  }                                                                                              \
  void name##_backward(const Context& context, const Elements& elements,                         \
                       const Scalars& scalars) {                                                 \
    map<1, 2>(context, elements, PointwiseBackward<F>{F{scalars}});                              \
  }                                                                                              \
  void name##_backward_backward(const Context& context, const Elements& elements,                \
                                const Scalars& scalars) {                                        \
    map<2, 3>(context, elements, PointwiseBackwardBackward<F>{F{scalars}});                      \
  }                                                                                              \
  }
