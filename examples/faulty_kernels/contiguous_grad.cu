// grad_output is read as if it were contiguous.
//
// y = x², gx = 2·x·g. These kernels are right for dense tensors; the fault is in bindings.cpp, which
// hands over the address of grad_output whatever its strides are (dense_grad).
//
// gradlint says GL701 on every device, and GL702 with it.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

void contiguous_grad(const Context& context, const Call& call) {
  each<Each>(context, call, Square{});
}

void contiguous_grad_backward(const Context& context, const Call& call) {
  each<Each>(context, call, SquareBackward{});
}

}  // namespace TWIN::GRADLINT_SPACE
