// scale: y = a·x, with a number a; scale_ writes y over x
// backward: gx = a·g, the same operator
// double backward, with c the gradient of gx: g gets a·c
// x is in no derivative: the map is linear.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct Scale {
  double factor;

  explicit Scale(const Scalars& scalars) : factor(scalars.at[0]) {}

  template <class W>
  GRADLINT_BOTH W value(W x) const {
    return static_cast<W>(factor) * x;
  }
};

}  // namespace gradlint::GRADLINT_SPACE

GRADLINT_MAPPED(scale, 1, 1, PointwiseForward, Scale)
