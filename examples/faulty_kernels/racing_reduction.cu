// The threads of a block add to one number without waiting for each other.
//
// y = Σ x² along the rows, gx = 2·x·g. Additions are lost where two threads read the same sum. The
// CPU has one thread a block and loses none.
//
// gradlint says GL606 or GL401 on CUDA: sums are wrong, and other ones each time.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T>
struct Racing {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
    Wide<T> sum = 0;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      sum += widened(x[start + c]) * widened(x[start + c]);
    }
#if FIXED
    sum = block.sum(sum);
    if (block.thread == 0) result[block.index] = narrowed<T>(sum);
#else
    volatile Wide<T>* total = static_cast<Wide<T>*>(block.memory);
    if (block.thread == 0) *total = 0;
    block.sync();
    *total = *total + sum;
    block.sync();
    if (block.thread == 0) result[block.index] = narrowed<T>(Wide<T>(*total));
#endif
  }
};

void racing_reduction(const Context& context, const Call& call) {
  each_row<Racing>(context, call, sizeof(double));
}

void racing_reduction_backward(const Context& context, const Call& call) {
  each_row<RowBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
