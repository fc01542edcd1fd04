// Element by element over tensors of one shape and of any strides.
#pragma once

#include <type_traits>

#include "operands.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int map_threads = 256;
constexpr int map_packs = 2;  // 16-byte accesses of a thread for each operand (heuristic: two in
                              // flight hide more of the memory's latency than one)
constexpr int map_unrolled = map_packs;
#else
constexpr int map_threads = 1;
constexpr int map_packs = 512;  // 8 KiB an operand: stays in the first-level cache
constexpr int map_unrolled = 1;
#endif

// body(in, out): W in[In], W out[Out] are the operands' elements at one position.
template <class T, int Out, int In, class Body>
struct Map {
  using W = Wide<T>;
  static constexpr int size = Pack<T>::size;
  static constexpr int64_t chunk = int64_t{map_threads} * map_packs * size;

  Operands<T, Out + In> operands;
  Body body;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t count = operands.elements.count;
    const int64_t first = block.index * chunk;
    const int64_t last = first + chunk < count ? first + chunk : count;
    int64_t packed = first;
    if (operands.packed) {
      packed += (last - first) / size * size;
      const int64_t step = int64_t{block.threads} * size;
      int64_t i = first + int64_t{block.thread} * size;
      for (; i + (map_unrolled - 1) * step < packed; i += map_unrolled * step) {
        packs<map_unrolled>(i, step);
      }
      for (; i < packed; i += step) packs<1>(i, step);
    }
    for (int64_t i = packed + block.thread; i < last; i += block.threads) element(i);
  }

 private:
  // The packs at i, i + step, …: all are on their way before the first is used.
  template <int Count>
  GRADLINT_BOTH void packs(int64_t i, int64_t step) const {
    Pack<T> in[Count][In];
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) {
        in[p][k] = operands.pack(Out + k, i + p * step);
      }
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      Pack<T> out[Out];
      GRADLINT_UNROLLED for (int e = 0; e < size; ++e) {
        W from[In], to[Out];
        for (int k = 0; k < In; ++k) from[k] = widened(in[p][k].at[e]);
        body(from, to);
        for (int k = 0; k < Out; ++k) out[k].at[e] = narrowed<T>(to[k]);
      }
      GRADLINT_UNROLLED for (int k = 0; k < Out; ++k) {
        write_pack(operands.data(k) + i + p * step, out[k]);
      }
    }
  }

  GRADLINT_BOTH void element(int64_t position) const {
    int64_t offsets[Out + In];
    operands.offsets(position, offsets);
    W in[In], out[Out];
    for (int k = 0; k < In; ++k) in[k] = widened(operands.data(Out + k)[offsets[Out + k]]);
    body(in, out);
    for (int k = 0; k < Out; ++k) operands.data(k)[offsets[k]] = narrowed<T>(out[k]);
  }
};

// Runs body(in, out) at every position, with body = make(T{}) for the element type T; `elements`
// has Out outputs, then In inputs.
template <int Out, int In, class Make>
void map_by_type(const Context& context, const Elements& elements, const Make& make) {
  with_dtype(elements.dtype, [&](auto type) {
    using T = decltype(type);
    const auto body = make(type);
    using Kernel = Map<T, Out, In, std::decay_t<decltype(body)>>;
    const int64_t blocks = (elements.count + Kernel::chunk - 1) / Kernel::chunk;
    launch(context, blocks, map_threads, 0, Kernel{Operands<T, Out + In>(elements), body});
  });
}

// The same with one body for all types.
template <int Out, int In, class Body>
void map(const Context& context, const Elements& elements, const Body& body) {
  map_by_type<Out, In>(context, elements, [&](auto) { return body; });
}

}  // namespace gradlint::GRADLINT_SPACE
