// scaled_sigmoid: y = σ(a·x), with σ(z) = 1 / (1 + e⁻ᶻ) and a number a
// backward: gx = g·a·s·t, with s = σ(a·x) and t = 1 − s = σ(−a·x)
// double backward, with c the gradient of gx: g gets c·a·s·t, x gets c·g·a²·s·t·(t − s)
// From σ′ = σ·(1 − σ), the logistic equation, and the chain rule.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct ScaledSigmoid {
  using W = Wide<T>;

  double scale;

  explicit ScaledSigmoid(const Scalars& scalars) : scale(scalars.at[0]) {}

  GRADLINT_BOTH W value(W x) const {
    return math::logistic<T>(static_cast<W>(scale) * x).at;
  }

  GRADLINT_BOTH W slope(W x) const {
    const W a = static_cast<W>(scale);
    const auto s = math::logistic<T>(a * x);
    return a * (s.at * s.opposite);
  }

  GRADLINT_BOTH W curvature(W x) const {
    const W a = static_cast<W>(scale);
    const auto s = math::logistic<T>(a * x);
    return a * (a * (s.at * s.opposite * (s.opposite - s.at)));  // in this order a large a does not overflow against 0
  }
};

void scaled_sigmoid(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<ScaledSigmoid>(context, elements, scalars);
}

void scaled_sigmoid_backward(const Context& context, const Elements& elements,
                             const Scalars& scalars) {
  smooth_backward<ScaledSigmoid>(context, elements, scalars);
}

void scaled_sigmoid_backward_backward(const Context& context, const Elements& elements,
                                      const Scalars& scalars) {
  smooth_backward_backward<ScaledSigmoid>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
