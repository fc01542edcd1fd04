// A sum is kept in the dtype of its terms.
//
// y_i = x_i·s with s = Σ x along the row; gx_i = g_i·s + Σ_j g_j·x_j. Backward adds the second sum up
// in the dtype of x: in float16 it has 11 bits, and stops growing at 2048 times its terms.
//
// gradlint --dtype float16 says GL801 on every device.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T>
struct Scaled {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
    Wide<T> sum = 0;
    for (int64_t c = block.thread; c < columns; c += block.threads) sum += widened(x[start + c]);
    sum = block.sum(sum);
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      result[start + c] = narrowed<T>(widened(x[start + c]) * sum);
    }
  }
};

template <class T>
struct ScaledBackward {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
    Wide<T> sum = 0, product = 0;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      sum += widened(x[start + c]);
      product += widened(grad[start + c]) * widened(x[start + c]);
#if !FIXED
      product = widened(narrowed<T>(product));
#endif
    }
    sum = block.sum(sum);
    product = block.sum(product);
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      result[start + c] = narrowed<T>(widened(grad[start + c]) * sum + product);
    }
  }
};

void half_accumulation(const Context& context, const Call& call) {
  each_row<Scaled>(context, call);
}

void half_accumulation_backward(const Context& context, const Call& call) {
  each_row<ScaledBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
