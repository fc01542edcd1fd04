// clipped_relu: y = min(max(x, 0), m), with a number m ≥ 0
// backward: gx = g where 0 < x < m, else 0
// double backward, with c the gradient of gx: g gets c where 0 < x < m, else 0; x gets 0
// At both kinks the gradient is 0, the subgradient that torch.nn.functional.relu6 takes, which
// this is for m = 6; NaN passes, as there.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct ClippedRelu {
  using W = Wide<T>;

  double ceiling;

  explicit ClippedRelu(const Scalars& scalars) : ceiling(scalars.at[0]) {}

  GRADLINT_BOTH W value(W x) const {
    return passes(x) ? x : x <= 0 ? W(0) : static_cast<W>(ceiling);
  }

  GRADLINT_BOTH bool passes(W x) const {
    return !(x <= 0 || x >= static_cast<W>(ceiling));
  }
};

void clipped_relu(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<ClippedRelu>(context, elements, scalars);
}

void clipped_relu_backward(const Context& context, const Elements& elements,
                           const Scalars& scalars) {
  piecewise_backward<ClippedRelu>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
