// scale: y = a·x, with a number a; scale_ writes y over x
// backward: gx = a·g, the same operator
// double backward, with c the gradient of gx: g gets a·c
// x is in no derivative: the map is linear.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct Scale {
  using W = Wide<T>;

  double factor;

  explicit Scale(const Scalars& scalars) : factor(scalars.at[0]) {}

  GRADLINT_BOTH W value(W x) const {
    return static_cast<W>(factor) * x;
  }
};

void scale(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<Scale>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
