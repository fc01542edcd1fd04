// The tail of a row is not masked.
//
// y = Σ x² along the rows, gx = 2·x·g. A row is read in groups of 8; the bound that is checked is
// that of the tensor, not that of the row, so that the last group reads into the next row.
//
// gradlint says GL706 on every device: rows of a multiple of 8 elements are right.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T>
struct Tail {
  static constexpr int group = 8;
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
#if FIXED
    const int64_t end = start + columns;
#else
    const int64_t end = rows * columns;
#endif
    Wide<T> sum = 0;
    for (int64_t c = block.thread * group; c < columns; c += block.threads * group) {
      for (int64_t i = start + c; i < start + c + group && i < end; ++i) {
        sum += widened(x[i]) * widened(x[i]);
      }
    }
    sum = block.sum(sum);
    if (block.thread == 0) result[block.index] = narrowed<T>(sum);
  }
};

void tail(const Context& context, const Call& call) { each_row<Tail>(context, call); }

void tail_backward(const Context& context, const Call& call) {
  each_row<RowBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
