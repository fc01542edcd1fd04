// soft_threshold: y = sign(x)·max(|x| − λ, 0), with a number λ ≥ 0
// backward: gx = g where |x| > λ, else 0; everywhere g for λ = 0
// double backward, with c the gradient of gx: g gets c where gx got g, else 0; x gets 0
// The proximal map of λ·|x|: Parikh, Boyd: Proximal algorithms (2014), section 6.5.2. At the kinks
// the gradient is 0, the subgradient that torch.nn.functional.softshrink takes. For λ = 0 the
// function is x and has no kink.
#include "common/pointwise.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct SoftThreshold {
  using W = Wide<T>;

  double threshold;

  explicit SoftThreshold(const Scalars& scalars) : threshold(scalars.at[0]) {}

  // The sign is taken from x: a comparison with 0 would be two instructions more.
  GRADLINT_BOTH W value(W x) const {
    const W shift = static_cast<W>(threshold);
    return math::fabs(x) <= shift ? W(0) : x - math::copysign(shift, x);
  }

  GRADLINT_BOTH bool passes(W x) const {
    const W shift = static_cast<W>(threshold);
    const W kink = shift == 0 ? W(-1) : shift;  // -1: nowhere
    return !(math::fabs(x) <= kink);
  }
};

void soft_threshold(const Context& context, const Elements& elements, const Scalars& scalars) {
  pointwise_forward<SoftThreshold>(context, elements, scalars);
}

void soft_threshold_backward(const Context& context, const Elements& elements,
                             const Scalars& scalars) {
  piecewise_backward<SoftThreshold>(context, elements, scalars);
}

}  // namespace gradlint::GRADLINT_SPACE
