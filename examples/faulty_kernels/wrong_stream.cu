// Kernels are launched on the default stream, not on the current one.
//
// y = x², gx = 2·x·g. kernel<<<grid, block>>> alone means the default stream, which does not wait for
// the streams that PyTorch makes.
//
// gradlint says GL803 on CUDA.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

inline Context streamed(const Context& context) {
  Context chosen = context;
#if !FIXED
  chosen.stream = nullptr;
#endif
  return chosen;
}

void wrong_stream(const Context& context, const Call& call) {
  each<Each>(streamed(context), call, Square{});
}

void wrong_stream_backward(const Context& context, const Call& call) {
  each<Each>(streamed(context), call, SquareBackward{});
}

}  // namespace TWIN::GRADLINT_SPACE
