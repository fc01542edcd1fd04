// weighted_sum: y = Σ wᵢ·xᵢ over all elements
// backward: xᵢ gets g·wᵢ, wᵢ gets g·xᵢ, the product g·v of a number and a tensor v
// double backward, with c the gradient of that product: g gets Σ cᵢ·vᵢ, the forward operator, and
//                                                       v gets g·c, the backward operator
// The inner product of two tensors, which is linear in each.
#include "common/map.h"
#include "common/sum.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct ProductTerm {
  GRADLINT_BOTH double operator()(const double (&in)[2]) const { return in[0] * in[1]; }
};

struct NumberTimes {
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[2], W (&out)[1]) const {
    out[0] = in[0] * in[1];
  }
};

void weighted_sum(const Context& context, const Elements& inputs, double* partials, void* result) {
  sum<2>(context, inputs, ProductTerm{}, partials, result);
}

void weighted_sum_backward(const Context& context, const Elements& elements) {
  map<1, 2>(context, elements, NumberTimes{});
}

}  // namespace gradlint::GRADLINT_SPACE
