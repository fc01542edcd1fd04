// sign_ste: y = sign(x), with 0 for NaN, as torch.sign
// backward, by a straight-through estimator: gx = g where |x| ≤ 1, else 0
// double backward, with c the gradient of gx: g gets c where |x| ≤ 1, else 0; x gets 0
// The true derivative is 0. The surrogate is that of Hubara, Courbariaux, Soudry, El-Yaniv, Bengio:
// Binarized neural networks (2016), section 2.3, equation 4.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct SignSte {
  using W = Wide<T>;

  explicit SignSte(const Scalars&) {}

  GRADLINT_BOTH W value(W x) const {
    return static_cast<W>((x > 0) - (x < 0));
  }

  GRADLINT_BOTH bool passes(W x) const {
    return math::fabs(x) <= 1;
  }
};

void sign_ste(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<SignSte>(context, elements, scalars);
}

void sign_ste_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  piecewise_backward<SignSte>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
