// square: y = x²
// backward: gx = 2·x·g
// double backward, with c the gradient of gx: g gets 2·x·c, x gets 2·g·c
// The derivatives are those of the power rule.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct Square {
  using W = Wide<T>;

  explicit Square(const Scalars&) {}

  GRADLINT_BOTH W value(W x) const {
    return x * x;
  }

  GRADLINT_BOTH W slope(W x) const {
    return 2 * x;
  }

  GRADLINT_BOTH W curvature(W) const {
    return 2;
  }
};

void square(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Square>(context, elements, scalars);
}

void square_backward(const Context& context, const Elements& elements, const Scalars& scalars) {
  smooth_backward<Square>(context, elements, scalars);
}

void square_backward_backward(const Context& context, const Elements& elements,
                              const Scalars& scalars) {
  smooth_backward_backward<Square>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
