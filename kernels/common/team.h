// A part of a block that works on one row.
#pragma once

#include "block.h"

namespace gradlint::GRADLINT_SPACE {

// The threads of one row.
struct Team {
  int index;  // of this team, in its block
  int lane;   // of this thread, in [0, lanes)
  int lanes;  // a power of two
  int thread;  // of this thread, in its block

  // Σ over the lanes of each of the values, the same in each lane; in a fixed order.
  template <int K, class W>
  GRADLINT_BOTH void sum(W (&values)[K]) const {
    reduce<Add>(values);
  }

  // The maximum over the lanes; NaN where one has NaN.
  template <class W>
  GRADLINT_BOTH W max(W value) const {
    W values[1] = {value};
    reduce<Larger>(values);
    return values[0];
  }

 private:
  // All teams of a block must come here: they wait for one another.
  template <class Operation, int K, class W>
  GRADLINT_BOTH void reduce(W (&values)[K]) const {
#ifdef GRADLINT_DEVICE_CODE
    auto& partial = device::shared<W[K][max_warps]>();
    if (lanes < warp_size) {
      exchange<Operation>(values, lanes);
      return;
    }
    exchange<Operation>(values, warp_size);
    if (lanes == warp_size) return;
    const int warps = lanes / warp_size;
    __syncthreads();  // the values of an earlier reduction have been read
    if (thread % warp_size == 0) {
      for (int k = 0; k < K; ++k) partial[k][thread / warp_size] = values[k];
    }
    __syncthreads();
    for (int k = 0; k < K; ++k) values[k] = partial[k][index * warps + (lane & (warps - 1))];
    exchange<Operation>(values, warps);
#else
    (void)values;
#endif
  }

#ifdef GRADLINT_DEVICE
  // Joins the values of neighbouring threads of a warp, `count` of them or all, a power of two.
  template <class Operation, int K, class W>
  static __device__ __forceinline__ void exchange(W (&values)[K], int count) {
    GRADLINT_UNROLLED for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      if (distance >= count) continue;
      for (int k = 0; k < K; ++k) {
        const W other = __shfl_xor_sync(0xffffffffu, values[k], distance);
        values[k] = Operation::joined(values[k], other);
      }
    }
  }
#endif
};

}  // namespace gradlint::GRADLINT_SPACE
