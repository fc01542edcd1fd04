// What forward left in a workspace is used by the backward of another call.
//
// y = sin x, gx = g·cos x. Forward keeps cos x in a workspace that all calls share (bindings.cpp);
// the backward of an earlier call finds that of a later one.
//
// gradlint says GL608 on every device.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class W>
GRADLINT_BOTH W sine(W x) {
  return W(::sin(double(x)));
}

template <class W>
GRADLINT_BOTH W cosine(W x) {
  return W(::cos(double(x)));
}

template <class T, class F>
struct Sine : Each<T, F> {
  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * this->chunk;
    for (int64_t i = first + block.thread; i < first + this->chunk; i += block.threads) {
      if (i >= this->count) continue;
      const Wide<T> at = widened(this->x[i]);
      T* kept = static_cast<T*>(this->f.workspace) + i;
      if (this->grad == nullptr) {
        this->result[i] = narrowed<T>(sine(at));
        *kept = narrowed<T>(cosine(at));
      } else {
#if FIXED
        const Wide<T> slope = cosine(at);
#else
        const Wide<T> slope = widened(*kept);
#endif
        this->result[i] = narrowed<T>(widened(this->grad[i]) * slope);
      }
    }
  }
};

struct Kept {
  void* workspace;
};

void stale_workspace(const Context& context, const Call& call) {
  each<Sine>(context, call, Kept{call.workspace});
}

void stale_workspace_backward(const Context& context, const Call& call) {
  each<Sine>(context, call, Kept{call.workspace});
}

}  // namespace TWIN::GRADLINT_SPACE
