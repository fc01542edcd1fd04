// Which of several atomic writes is the last is left to chance.
//
// y = the last row of x; gx = g in the last row, 0 elsewhere. All rows are written to y, element by
// element: each write is whole, and their order is nobody's. The CPU goes through them in order.
//
// gradlint says GL606 or GL401 on CUDA: results differ by far more than rounding.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

// Writes that are whole: elements are as wide as what the hardware exchanges at once, or narrower.
template <class T>
GRADLINT_BOTH void exchange(T* address, T value) {
#ifdef GRADLINT_DEVICE_CODE
  if constexpr (sizeof(T) == 8) {
    atomicExch(reinterpret_cast<unsigned long long*>(address), __double_as_longlong(value));
    return;
  } else if constexpr (sizeof(T) == 4) {
    atomicExch(address, value);
    return;
  }
#endif
  *address = value;
}

// One block a row: in the order of the rows on the CPU, where one thread does it.
template <class T>
struct Winner {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
#if FIXED
    if (block.index != rows - 1) return;
#endif
    const T* row = x + block.index * columns;
    for (int64_t c = block.thread; c < columns; c += block.threads) exchange(result + c, row[c]);
  }
};

template <class T>
struct WinnerBackward {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const bool last = block.index == rows - 1;
    T* row = result + block.index * columns;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      row[c] = last ? grad[c] : narrowed<T>(Wide<T>(0));
    }
  }
};

void atomic_winner(const Context& context, const Call& call) { each_row<Winner>(context, call); }

void atomic_winner_backward(const Context& context, const Call& call) {
  each_row<WinnerBackward>(context, call);
}

}  // namespace TWIN::GRADLINT_SPACE
