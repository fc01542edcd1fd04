// Elements without a gradient are not written.
//
// y = max(x, 0), gx = g where x > 0. The gradient is allocated, not filled, and backward leaves out
// the zeros.
//
// gradlint says GL607 on every device.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

struct Positive {
  template <class W>
  GRADLINT_BOTH W operator()(W, W x) const {
    return x > 0 ? x : W(0);
  }
};

template <class T, class F>
struct Written : Each<T, F> {
  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * this->chunk;
    for (int64_t i = first + block.thread; i < first + this->chunk; i += block.threads) {
      if (i >= this->count) continue;
      if (widened(this->x[i]) > 0) {
        this->result[i] = this->grad[i];
      } else {
#if FIXED
        this->result[i] = narrowed<T>(Wide<T>(0));
#endif
      }
    }
  }
};

void uninitialised(const Context& context, const Call& call) {
  each<Each>(context, call, Positive{});
}

void uninitialised_backward(const Context& context, const Call& call) {
  each<Written>(context, call, Positive{});
}

}  // namespace TWIN::GRADLINT_SPACE
