// The element before the first one is read.
//
// y_i = x_i − x_{i−1}, gx_i = g_i − g_{i+1}. There is no x_{−1}: whatever lies before x is taken for
// it, often zero.
//
// gradlint says GL704 on every device, where it lays NaN before x; --sanitizer memcheck says GL805.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

struct Difference {};

template <class T, class F>
struct Differences : Each<T, F> {
  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * this->chunk;
    for (int64_t i = first + block.thread; i < first + this->chunk; i += block.threads) {
      if (i >= this->count) continue;
      Wide<T> before = 0;
#if FIXED
      if (i > 0)
#endif
        before = widened(this->x[i - 1]);
      this->result[i] = narrowed<T>(widened(this->x[i]) - before);
    }
  }
};

template <class T, class F>
struct DifferencesBackward : Each<T, F> {
  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * this->chunk;
    for (int64_t i = first + block.thread; i < first + this->chunk; i += block.threads) {
      if (i >= this->count) continue;
      const Wide<T> after = i + 1 < this->count ? widened(this->grad[i + 1]) : Wide<T>(0);
      this->result[i] = narrowed<T>(widened(this->grad[i]) - after);
    }
  }
};

void out_of_bounds(const Context& context, const Call& call) {
  each<Differences>(context, call, Difference{});
}

void out_of_bounds_backward(const Context& context, const Call& call) {
  each<DifferencesBackward>(context, call, Difference{});
}

}  // namespace TWIN::GRADLINT_SPACE
