// gelu: y = x·Φ(x), with the normal distribution Φ(x) = erfc(−x/√2) / 2
// backward: gx = g·(Φ(x) + x·φ(x)), with the normal density φ(x) = e^(−x²/2) / √(2π)
// double backward, with c the gradient of gx: g gets c·(Φ(x) + x·φ(x)), x gets c·g·φ(x)·(2 − x²)
// Hendrycks, Gimpel: Gaussian error linear units (2016), section 2; differentiated with Φ′ = φ and
// φ′ = −x·φ. 1 + erf(x/√2) would cancel where x is negative; erfc keeps its digits, and so does
// what float takes for it.
#include "common/normal.h"
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

// Each product with x is 0 where the other factor is: at infinity too, where the limit is 0.
template <class T>
struct Gelu {
  explicit Gelu(const Scalars&) {}

  GRADLINT_BOTH double value(double x) const { return math::vanishing(distribution(x), x); }

  GRADLINT_BOTH double slope(double x) const {
    return distribution(x) + math::vanishing(density(x), x);
  }

  GRADLINT_BOTH double curvature(double x) const {
    return math::vanishing(density(x), 2 - x * x);
  }

  // With z = |x|: x·Φ(x) = max(x, 0) − z·Φ(−z), for x of either sign.
  GRADLINT_BOTH float value(float x) const {
    const math::NormalTail tail = math::normal_tail<T>(x);
    return (x > 0 ? x : 0.0f) - tail.z * tail.mills * tail.bell;
  }

  // Φ(−z) − z·φ(z) where x is negative, else 1 less that.
  GRADLINT_BOTH float slope(float x) const {
    const math::NormalTail tail = math::normal_tail<T>(x);
    const float below = tail.bell * (tail.mills - static_cast<float>(peak) * tail.z);
    return x > 0 ? 1 - below : below;
  }

  GRADLINT_BOTH float curvature(float x) const {
    const math::NormalTail tail = math::normal_tail<T>(x);
    return static_cast<float>(peak) * tail.bell * math::fma(-tail.z, tail.z, 2);
  }

 private:
  static constexpr double peak = 0.39894228040143267794;       // 1/√(2π)
  static constexpr double root_half = 0.70710678118654752440;  // 1/√2

  static GRADLINT_BOTH double distribution(double x) { return 0.5 * math::erfc(-root_half * x); }

  static GRADLINT_BOTH double density(double x) { return peak * math::exp(-0.5 * x * x); }
};

void gelu(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Gelu>(context, elements, scalars);
}

void gelu_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  smooth_backward<Gelu>(context, elements, scalars);
}

void gelu_backward_backward(const Context& context, const Elements& elements,
                            const Scalars& scalars) {
  smooth_backward_backward<Gelu>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
