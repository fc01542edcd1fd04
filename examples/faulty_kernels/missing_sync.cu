// A barrier is missing between writing shared memory and reading it.
//
// y = Σ x² along the rows, gx = 2·x·g. Each thread leaves its part in shared memory; the first adds
// them up without waiting for the others.
//
// gradlint --sanitizer racecheck says GL805. Results are often right by luck, and on the CPU, with
// one thread a block, always.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T>
struct Unsynchronised {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    auto* parts = static_cast<Wide<T>*>(block.memory);
    const int64_t start = block.index * columns;
    Wide<T> part = 0;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      part += widened(x[start + c]) * widened(x[start + c]);
    }
    parts[block.thread] = part;
#if FIXED
    block.sync();
#endif
    if (block.thread != 0) return;
    Wide<T> sum = 0;
    for (int k = 0; k < block.threads; ++k) sum += parts[k];
    result[block.index] = narrowed<T>(sum);
  }
};

void missing_sync(const Context& context, const Call& call) {
  each_row<Unsynchronised>(context, call, threads * sizeof(double));
}

void missing_sync_backward(const Context& context, const Call& call) {
  each_row<RowBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
