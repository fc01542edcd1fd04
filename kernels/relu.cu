// relu: y = max(x, 0)
// backward: gx = g where x > 0, else 0
// double backward, with c the gradient of gx: g gets c where x > 0, else 0; x gets 0
// At the kink the gradient is 0, the subgradient that torch.relu takes; NaN passes, as there.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct Relu {
  explicit Relu(const Scalars&) {}

  template <class W>
  GRADLINT_BOTH W value(W x) const {
    return passes(x) ? x : W(0);
  }

  template <class W>
  GRADLINT_BOTH bool passes(W x) const {
    return !(x <= 0);
  }
};

}  // namespace gradlint::GRADLINT_SPACE

GRADLINT_PIECEWISE(relu, Relu)
