// exp: y = eˣ
// backward: gx = g·eˣ
// double backward, with c the gradient of gx: g gets c·eˣ, x gets c·g·eˣ
// eˣ is the function that is its own derivative.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct Exp {
  using W = Wide<T>;

  explicit Exp(const Scalars&) {}

  GRADLINT_BOTH W value(W x) const {
    return math::exp(x);
  }

  GRADLINT_BOTH W slope(W x) const {
    return math::exp(x);
  }

  GRADLINT_BOTH W curvature(W x) const {
    return math::exp(x);
  }
};

void exp(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Exp>(context, elements, scalars);
}

void exp_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  smooth_backward<Exp>(context, elements, scalars);
}

void exp_backward_backward(const Context& context, const Elements& elements,
                           const Scalars& scalars) {
  smooth_backward_backward<Exp>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
