// silu: y = x·s, with s = σ(x) = 1 / (1 + e⁻ˣ)
// backward: gx = g·s·(1 + x·t), with t = 1 − s = σ(−x)
// double backward, with c the gradient of gx: g gets c·s·(1 + x·t),
//                                             x gets c·g·s·t·(2 + x·(t − s))
// Elfwing, Uchibe, Doya: Sigmoid-weighted linear units (2018), equations 3 and 4; differentiated
// once more with s′ = s·t.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

// Each product with x is 0 where the other factor is: at infinity too, where the limit is 0.
template <class T>
struct Silu {
  using W = Wide<T>;

  explicit Silu(const Scalars&) {}

  GRADLINT_BOTH W value(W x) const {
    return math::vanishing(math::logistic<T>(x).at, x);
  }

  GRADLINT_BOTH W slope(W x) const {
    const auto s = math::logistic<T>(x);
    return math::vanishing(s.at, 1 + math::vanishing(s.opposite, x));
  }

  GRADLINT_BOTH W curvature(W x) const {
    const auto s = math::logistic<T>(x);
    return math::vanishing(s.at * s.opposite, 2 + x * (s.opposite - s.at));
  }
};

void silu(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Silu>(context, elements, scalars);
}

void silu_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  smooth_backward<Silu>(context, elements, scalars);
}

void silu_backward_backward(const Context& context, const Elements& elements,
                            const Scalars& scalars) {
  smooth_backward_backward<Silu>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
