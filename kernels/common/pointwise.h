// An operator y = f(x) of one tensor.
#pragma once

#include "map.h"

namespace gradlint::GRADLINT_SPACE {

// y = f(x); F has value(x)
template <class F>
struct PointwiseForward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[1], W (&out)[1]) const {
    out[0] = f.value(in[0]);
  }
};

// gx = g·f′(x), from (g, x); F has slope(x)
template <class F>
struct SmoothBackward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[2], W (&out)[1]) const {
    out[0] = in[0] * f.slope(in[1]);
  }
};

// With c the gradient of gx: g gets c·f′(x), x gets c·g·f″(x), from (c, g, x); F has slope(x)
// and curvature(x)
template <class F>
struct SmoothBackwardBackward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[3], W (&out)[2]) const {
    out[0] = in[0] * f.slope(in[2]);
    out[1] = in[0] * (in[1] * f.curvature(in[2]));
  }
};

// gx = g where F says passes(x), else 0, from (g, x). What does not pass can't leave a NaN, as
// infinity times 0 would.
template <class F>
struct PiecewiseBackward {
  F f;
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[2], W (&out)[1]) const {
    out[0] = f.passes(in[1]) ? in[0] : W(0);
  }
};

}  // namespace gradlint::GRADLINT_SPACE

// Defines the entry point `name`, declared in kernels.h, that maps Body<F> over Out outputs and
// In inputs. F, which may depend on the element type T, is made of the operator's numbers.
#define GRADLINT_MAPPED(name, Out, In, Body, F)                                         \
  namespace gradlint::GRADLINT_SPACE {                                                  \
  void name(const Context& context, const Elements& elements, const Scalars& scalars) { \
    map_by_type<Out, In>(context, elements, [&](auto type) {                            \
      using T [[maybe_unused]] = decltype(type);                                        \
      return Body<F>{F{scalars}};                                                       \
    });                                                                                 \
  }                                                                                     \
  }

// The entry points of an operator that has two derivatives.
#define GRADLINT_SMOOTH(name, F)                     \
  GRADLINT_MAPPED(name, 1, 1, PointwiseForward, F)   \
  GRADLINT_MAPPED(name##_backward, 1, 2, SmoothBackward, F) \
  GRADLINT_MAPPED(name##_backward_backward, 2, 3, SmoothBackwardBackward, F)

// The entry points of an operator whose gradient passes or does not.
#define GRADLINT_PIECEWISE(name, F)                \
  GRADLINT_MAPPED(name, 1, 1, PointwiseForward, F) \
  GRADLINT_MAPPED(name##_backward, 1, 2, PiecewiseBackward, F)
