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

// Maps Body<F<T>>, made of the operator's numbers, over Out outputs and In inputs of element type T.
template <int Out, int In, template <class> class Body, template <class> class F>
void map_function(const Context& context, const Elements& elements, const Scalars& scalars) {
  map_by_type<Out, In>(context, elements, [&](auto type) {
    using Function = F<decltype(type)>;
    return Body<Function>{Function(scalars)};
  });
}

// What an entry point does, for y = F(x): (y; x)
template <template <class> class F>
void pointwise_forward(const Context& context, const Elements& elements, const Scalars& scalars) {
  map_function<1, 1, PointwiseForward, F>(context, elements, scalars);
}

// (gx; g, x)
template <template <class> class F>
void smooth_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  map_function<1, 2, SmoothBackward, F>(context, elements, scalars);
}

// (gg, gx; c, g, x)
template <template <class> class F>
void smooth_backward_backward(const Context& context, const Elements& elements,
                              const Scalars& scalars) {
  map_function<2, 3, SmoothBackwardBackward, F>(context, elements, scalars);
}

// (gx; g, x)
template <template <class> class F>
void piecewise_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  map_function<1, 2, PiecewiseBackward, F>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
