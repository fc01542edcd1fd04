// exp: y = eˣ
// backward: gx = g·eˣ
// double backward, with c the gradient of gx: g gets c·eˣ, x gets c·g·eˣ
// eˣ is the function that is its own derivative.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct Exp {
  explicit Exp(const Scalars&) {}

  template <class W>
  GRADLINT_BOTH W value(W x) const {
    return math::exp(x);
  }

  template <class W>
  GRADLINT_BOTH W slope(W x) const {
    return math::exp(x);
  }

  template <class W>
  GRADLINT_BOTH W curvature(W x) const {
    return math::exp(x);
  }
};

}  // namespace gradlint::GRADLINT_SPACE

GRADLINT_SMOOTH(exp, Exp)
