// add_relu: z = max(x + y, 0), in one pass over memory
// backward: gx = gy = g where z > 0, else 0: relu's backward at z
// double backward, with c the sum of the gradients of gx and gy: g gets c where z > 0, else 0; x
//                                                                and y get 0
// At the kink the gradient is 0, as torch.relu's; NaN passes, as there.
#include "common/map.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

struct AddRelu {
  template <class W>
  GRADLINT_BOTH void operator()(const W (&in)[2], W (&out)[1]) const {
    const W sum = in[0] + in[1];
    out[0] = sum <= 0 ? W(0) : sum;
  }
};

void add_relu(const Context& context, const Elements& elements) {
  map<1, 2>(context, elements, AddRelu{});
}

}  // namespace gradlint::GRADLINT_SPACE
