// relu: y = max(x, 0)
// backward: gx = g where x > 0, else 0
// double backward, with c the gradient of gx: g gets c where x > 0, else 0; x gets 0
// At the kink the gradient is 0, the subgradient that torch.relu takes; NaN passes, as there.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct Relu {
  using W = Wide<T>;

  explicit Relu(const Scalars&) {}

  GRADLINT_BOTH W value(W x) const {
    return passes(x) ? x : W(0);
  }

  GRADLINT_BOTH bool passes(W x) const {
    return !(x <= 0);
  }
};

void relu(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Relu>(context, elements, scalars);
}

void relu_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  piecewise_backward<Relu>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
