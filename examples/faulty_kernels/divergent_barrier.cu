// Not all threads of a block reach a barrier.
//
// y = Σ x² along the rows, gx = 2·x·g. The barrier stands in a loop that threads leave at different
// times, where a row has no multiple of as many elements as the block has threads.
//
// gradlint --sanitizer synccheck says GL805. Some GPUs hang, others go on with right results.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T>
struct Divergent {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
    Wide<T> sum = 0;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      sum += widened(x[start + c]) * widened(x[start + c]);
#if !FIXED
      block.sync();
#endif
    }
    sum = block.sum(sum);
    if (block.thread == 0) result[block.index] = narrowed<T>(sum);
  }
};

void divergent_barrier(const Context& context, const Call& call) {
  each_row<Divergent>(context, call);
}

void divergent_barrier_backward(const Context& context, const Call& call) {
  each_row<RowBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
