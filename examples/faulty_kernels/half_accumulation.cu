// A sum is kept in the dtype of its terms.
//
// y_i = Σ_{j≤i} x_j along the rows, gx_i = Σ_{j≥i} g_j. Backward rounds the running sum to the dtype
// of x after every term: in float16, with 11 bits, it stands still at a few thousand terms.
//
// gradlint --dtype float16 says GL801 on every device.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

// One thread a row: running sums by many threads are another story.
template <class T>
struct Running {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    if (block.thread != 0) return;
    const int64_t start = block.index * columns;
    Wide<T> sum = 0;
    for (int64_t i = start; i < start + columns; ++i) {
      sum += widened(x[i]);
      result[i] = narrowed<T>(sum);
    }
  }
};

template <class T>
struct RunningBackward {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    if (block.thread != 0) return;
    const int64_t start = block.index * columns;
    Wide<T> sum = 0;
    for (int64_t i = start + columns - 1; i >= start; --i) {
      sum += widened(grad[i]);
#if !FIXED
      sum = widened(narrowed<T>(sum));
#endif
      result[i] = narrowed<T>(sum);
    }
  }
};

void half_accumulation(const Context& context, const Call& call) {
  each_row<Running>(context, call);
}

void half_accumulation_backward(const Context& context, const Call& call) {
  each_row<RunningBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
