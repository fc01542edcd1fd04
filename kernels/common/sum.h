// A sum over all positions of tensors of one shape and of any strides, in two stages: each block
// sums its own range, then one block sums what those found. The order never changes.
#pragma once

#include "launch.h"
#include "operands.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int sum_threads = 128;  // with sum_blocks, one wave on a device of 128 processors or more
constexpr int sum_unrolled = 4;   // 16-byte accesses in flight for each operand (heuristic)
#else
constexpr int sum_threads = 1;
constexpr int sum_unrolled = 1;
#endif

// partials[b] = Σ body(in) over the range of block b. Terms and sums are double: beside the
// memory's time it costs nothing, and no count of terms is too large for it.
template <class T, int In, class Body>
struct PartialSums {
  static constexpr int size = Pack<T>::size;
  static constexpr int most_threads = sum_threads;

  Operands<T, In> operands;
  Body body;
  int64_t range;  // positions of a block, a multiple of the pack's size
  double* partials;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t count = operands.elements.count;
    const int64_t first = block.index * range;
    const int64_t last = first + range < count ? first + range : count;
    double total = 0;
    int64_t packed = first;
    if (operands.access == Access::packs) {
      packed += (last - first) / size * size;
      const int64_t step = int64_t{block.threads} * size;
      int64_t i = first + int64_t{block.thread} * size;
      for (; i + (sum_unrolled - 1) * step < packed; i += sum_unrolled * step) {
        packs<sum_unrolled>(i, step, total);
      }
      for (; i < packed; i += step) packs<1>(i, step, total);
    }
    const bool rows = operands.access == Access::row_packs;  // positions count packs
    for (int64_t i = packed + block.thread; i < last; i += block.threads) {
      int64_t offsets[In];
      if (operands.access == Access::far_elements) {
        operands.far_offsets(i, offsets);
      } else {
        operands.offsets(i, offsets);
      }
      for (int e = 0; e < (rows ? size : 1); ++e) {
        double in[In];
        for (int k = 0; k < In; ++k) {
          const int64_t along = operands.elements.strides[k][0] != 0 ? e : 0;
          in[k] = widened(operands.data(k)[offsets[k] + along]);
        }
        total += body(in);
      }
    }
    total = block.sum(total);
    if (block.thread == 0) partials[block.index] = total;
  }

 private:
  template <int Count>
  GRADLINT_BOTH void packs(int64_t i, int64_t step, double& total) const {
    Words in[Count][In];
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) {
        const bool dense = operands.elements.strides[k][0] != 0;
        in[p][k] = operands.words(k, dense ? i + p * step : 0);
      }
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      Wide<T> from[In][size];
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) widen_pack<T>(in[p][k], from[k]);
      GRADLINT_UNROLLED for (int e = 0; e < size; ++e) {
        double one[In];
        for (int k = 0; k < In; ++k) one[k] = from[k][e];
        total += body(one);
      }
    }
  }
};

// *result = Σ partials
template <class T>
struct TotalSum {
  static constexpr int most_threads = sum_threads;
  const double* partials;
  int64_t count;
  T* result;

  GRADLINT_BOTH void operator()(const Block& block) const {
    double total = 0;
    for (int64_t i = block.thread; i < count; i += block.threads) total += partials[i];
    total = block.sum(total);
    if (block.thread == 0) *result = narrowed<T>(static_cast<Wide<T>>(total));
  }
};

// Writes to `result`, of the operands' dtype, the sum over all positions of body(in), where
// double in[In] are the operands' elements. `partials` has room for sum_blocks numbers.
template <int In, class Body>
void sum(const Context& context, const Elements& inputs, const Body& body, double* partials,
         void* result) {
  with_dtype(inputs.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int64_t least = 4096;  // heuristic: a block of fewer terms costs more than it adds
    const Operands<T, In> operands(inputs);
    const int64_t count = operands.elements.count;
    const int64_t even = (count + sum_blocks - 1) / sum_blocks;
    const int64_t range = (even + least - 1) / least * least;
    const int64_t blocks = count == 0 ? 0 : (count + range - 1) / range;
    launch(context, blocks, sum_threads, 0,
           PartialSums<T, In, Body>{operands, body, range, partials});
    launch(context, 1, sum_threads, 0, TotalSum<T>{partials, blocks, static_cast<T*>(result)});
  });
}

}  // namespace gradlint::GRADLINT_SPACE
