// Positions are counted in 32 bits.
//
// y = x², gx = 2·x·g. Beyond 2³¹ elements `first` is negative: what lies there is never written.
//
// gradlint says GL806 on CUDA, where there is memory for it; small tensors are right everywhere.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T, class F>
struct Counted : Each<T, F> {
  GRADLINT_BOTH void operator()(const Block& block) const {
#if FIXED
    using Index = int64_t;
#else
    using Index = int32_t;
#endif
    const Index first = static_cast<Index>(block.index * this->chunk);
    for (Index k = block.thread; k < this->chunk; k += block.threads) {
      const Index i = first + k;
      if (i < 0 || i >= this->count) continue;
      const Wide<T> g = this->grad != nullptr ? widened(this->grad[i]) : Wide<T>(0);
      this->result[i] = narrowed<T>(this->f(g, widened(this->x[i])));
    }
  }
};

void overflow(const Context& context, const Call& call) { each<Counted>(context, call, Square{}); }

void overflow_backward(const Context& context, const Call& call) {
  each<Counted>(context, call, SquareBackward{});
}

}  // namespace TWIN::GRADLINT_SPACE
