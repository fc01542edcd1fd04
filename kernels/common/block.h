// A block of threads. On the CPU it has one thread, so a loop from `thread` in strides of
// `threads`, and a reduction over the block, are right in both.
#pragma once

#include <cstdint>

#include "arrays.h"
#include "functions.h"

#ifdef GRADLINT_DEVICE
#include GRADLINT_DEVICE
#endif

namespace gradlint::GRADLINT_SPACE {

constexpr int warp_size = 32;
constexpr int max_warps = 32;

struct Add {
  template <class W>
  static GRADLINT_BOTH W joined(W a, W b) {
    return a + b;
  }
};

struct Larger {
  template <class W>
  static GRADLINT_BOTH W joined(W a, W b) {
    return math::larger(a, b);
  }
};

// Positions are 64 bit throughout: no index wraps around on a large tensor.
struct Block {
  int64_t index;  // of this block, in [0, count)
  int64_t count;
  int thread;  // of this thread, in [0, threads)
  int threads;
  void* memory;  // shared by the threads of the block, as large as launch() was told

  GRADLINT_BOTH void sync() const {
#ifdef GRADLINT_DEVICE_CODE
    __syncthreads();
#endif
  }

  // Σ over the threads of the block, the same in each; always added in the same order.
  template <class W>
  GRADLINT_BOTH W sum(W value) const {
    return reduced<Add>(value, W(0));
  }

  // The maximum over the threads of the block; NaN where one has NaN.
  template <class W>
  GRADLINT_BOTH W max(W value) const {
    return reduced<Larger>(value, -static_cast<W>(INFINITY));
  }

 private:
  template <class Operation, class W>
  GRADLINT_BOTH W reduced(W value, W neutral) const {
#ifdef GRADLINT_DEVICE_CODE
    auto& partial = device::shared<W[max_warps]>();
    value = warp_reduced<Operation>(value);
    if (threads <= warp_size) return value;
    const int lane = thread % warp_size, warp = thread / warp_size;
    __syncthreads();  // the values of an earlier reduction have been read
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < (threads + warp_size - 1) / warp_size ? partial[lane] : neutral;
    return warp_reduced<Operation>(value);
#else
    (void)neutral;
    return value;
#endif
  }

#ifdef GRADLINT_DEVICE
  template <class Operation, class W>
  static __device__ __forceinline__ W warp_reduced(W value) {
    // Exchanged, not shifted down: every lane ends with the result.
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      value = Operation::joined(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
  }
#endif
};

}  // namespace gradlint::GRADLINT_SPACE
