// gelu: y = x·Φ(x), with the normal distribution Φ(x) = erfc(−x/√2) / 2
// backward: gx = g·(Φ(x) + x·φ(x)), with the normal density φ(x) = e^(−x²/2) / √(2π)
// double backward, with c the gradient of gx: g gets c·(Φ(x) + x·φ(x)), x gets c·g·φ(x)·(2 − x²)
// Hendrycks, Gimpel: Gaussian error linear units (2016), section 2; differentiated with Φ′ = φ and
// φ′ = −x·φ. 1 + erf(x/√2) would cancel where x is negative; erfc keeps its digits.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

// Each product with x is 0 where the other factor is: at infinity too, where the limit is 0.
struct Gelu {
  explicit Gelu(const Scalars&) {}

  template <class W>
  GRADLINT_BOTH W value(W x) const {
    return math::vanishing(distribution(x), x);
  }

  template <class W>
  GRADLINT_BOTH W slope(W x) const {
    return distribution(x) + math::vanishing(density(x), x);
  }

  template <class W>
  GRADLINT_BOTH W curvature(W x) const {
    return math::vanishing(density(x), 2 - x * x);
  }

 private:
  template <class W>
  static GRADLINT_BOTH W distribution(W x) {
    constexpr W root_half = static_cast<W>(0.70710678118654752440);  // 1/√2
    return W(0.5) * math::erfc(-root_half * x);
  }

  template <class W>
  static GRADLINT_BOTH W density(W x) {
    constexpr W peak = static_cast<W>(0.39894228040143267794);  // 1/√(2π)
    return peak * math::exp(W(-0.5) * x * x);
  }
};

}  // namespace gradlint::GRADLINT_SPACE

GRADLINT_SMOOTH(gelu, Gelu)
