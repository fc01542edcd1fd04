// square: y = x²
// backward: gx = 2·x·g
// double backward, with c the gradient of gx: g gets 2·x·c, x gets 2·g·c
// The derivatives are those of the power rule.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct Square {
  explicit Square(const Scalars&) {}

  template <class W>
  GRADLINT_BOTH W value(W x) const {
    return x * x;
  }

  template <class W>
  GRADLINT_BOTH W slope(W x) const {
    return 2 * x;
  }

  template <class W>
  GRADLINT_BOTH W curvature(W) const {
    return 2;
  }
};

}  // namespace gradlint::GRADLINT_SPACE

GRADLINT_SMOOTH(square, Square)
