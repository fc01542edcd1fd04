// Element by element over tensors of one shape and of any strides.
#pragma once

#include "block.h"
#include "dtypes.h"

namespace gradlint {

#ifdef __CUDACC__
constexpr int map_threads = 256;
constexpr int map_packs = 2;  // 16-byte accesses of a thread for each operand (heuristic: two in
                              // flight hide more of the memory's latency than one)
#else
constexpr int map_threads = 1;
constexpr int map_packs = 512;  // 8 KiB an operand: stays in the first-level cache
#endif

template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

// body(in, out): W in[In], W out[Out] are the operands' elements at one position.
template <class T, int Out, int In, class Body>
struct Map {
  using W = Wide<T>;
  static constexpr int operands = Out + In;
  static constexpr int64_t chunk = int64_t{map_threads} * map_packs * Pack<T>::size;

  Elements elements;
  bool aligned;
  Body body;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * chunk;
    const int64_t last = first + chunk < elements.count ? first + chunk : elements.count;
    if (elements.contiguous && aligned) {
      const int64_t whole = first + (last - first) / Pack<T>::size * Pack<T>::size;
      for (int64_t i = first + int64_t{block.thread} * Pack<T>::size; i < whole;
           i += int64_t{block.threads} * Pack<T>::size) {
        pack(i);
      }
      for (int64_t i = whole + block.thread; i < last; i += block.threads) element(i);
    } else {
      for (int64_t i = first + block.thread; i < last; i += block.threads) element(i);
    }
  }

 private:
  GRADLINT_BOTH T* data(int operand) const { return static_cast<T*>(elements.data[operand]); }

  GRADLINT_BOTH void pack(int64_t i) const {
    Pack<T> packs[operands];
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 0; k < In; ++k) {
      packs[Out + k] = *reinterpret_cast<const Pack<T>*>(data(Out + k) + i);
    }
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int e = 0; e < Pack<T>::size; ++e) {
      W in[In], out[Out];
      for (int k = 0; k < In; ++k) in[k] = widened(packs[Out + k].at[e]);
      body(in, out);
      for (int k = 0; k < Out; ++k) packs[k].at[e] = narrowed<T>(out[k]);
    }
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 0; k < Out; ++k) *reinterpret_cast<Pack<T>*>(data(k) + i) = packs[k];
  }

  GRADLINT_BOTH void element(int64_t position) const {
    int64_t offsets[operands] = {};
    if (elements.contiguous) {
      for (int k = 0; k < operands; ++k) offsets[k] = position;
    } else {
      int64_t rest = position;
      for (int axis = 0; axis < elements.axes; ++axis) {
        const int64_t size = elements.shape[axis];
        const int64_t above = quotient(rest, size);
        const int64_t along = rest - above * size;
        for (int k = 0; k < operands; ++k) offsets[k] += along * elements.strides[k][axis];
        rest = above;
      }
    }
    W in[In], out[Out];
    for (int k = 0; k < In; ++k) in[k] = widened(data(Out + k)[offsets[Out + k]]);
    body(in, out);
    for (int k = 0; k < Out; ++k) data(k)[offsets[k]] = narrowed<T>(out[k]);
  }

  // Division of 64 bits is slow on a GPU; most tensors need only 32.
  static GRADLINT_BOTH int64_t quotient(int64_t a, int64_t b) {
    constexpr int64_t limit = 0x7fffffff;
    return a <= limit && b <= limit ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
  }
};

// Runs body(in, out) at every position; `elements` has Out outputs, then In inputs.
template <int Out, int In, class Body>
void map(const Context& context, const Elements& elements, const Body& body) {
  with_dtype(elements.dtype, [&](auto type) {
    using T = decltype(type);
    using Kernel = Map<T, Out, In, Body>;
    bool aligned = true;
    for (int k = 0; k < Out + In; ++k) {
      aligned = aligned && reinterpret_cast<uintptr_t>(elements.data[k]) % alignof(Pack<T>) == 0;
    }
    const int64_t blocks = (elements.count + Kernel::chunk - 1) / Kernel::chunk;
    launch(context, blocks, map_threads, 0, Kernel{elements, aligned, body});
  });
}

}  // namespace gradlint
