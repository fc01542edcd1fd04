// CUDA: how the threads of a block are started, and the memory that they share.
#pragma once

#include <cstdint>

#include "arrays.h"
#include "cuda_error.h"

namespace gradlint::device {

inline int processors(const Context& context) { return context.processors; }

// Most bytes that the threads of a block can share, where the kernel asks for more than the usual.
inline size_t most_memory() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<size_t>(bytes);
}

// What a kernel may have without asking (CUDA C++ Programming Guide, "Shared Memory").
constexpr size_t usual_memory = 48 * 1024;

// One array for all threads of a block, the same at every call for that type.
template <class Array>
__device__ __forceinline__ Array& shared() {
  __shared__ Array array;
  return array;
}

// A body says how many threads a block of it has at most: the compiler gives a thread no more
// registers than so many can have. The 1, of the blocks that must fit at once, is no formality:
// without it ptxas 13.0 holds 32 registers to be enough, spills, and makes loads wait for others.
template <class Block, class Body>
__global__ void __launch_bounds__(most_threads<Body>, 1) run_body(Body body) {
  extern __shared__ __align__(16) unsigned char memory[];
  body(Block{static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(gridDim.x),
             static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), memory});
}

// How many blocks of so many threads, that share so many bytes, run at once on the whole device.
template <class Block, class Body>
int64_t resident(const Context& context, int threads, size_t memory) {
  int blocks = 0;  // of a multiprocessor
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, run_body<Block, Body>, threads,
                                                      memory));
  return int64_t{blocks > 0 ? blocks : 1} * context.processors;
}

// Runs body(block) for `blocks` blocks, at least one, of `threads` threads each, with `memory`
// bytes that a block shares.
template <class Block, class Body>
void start(const Context& context, int64_t blocks, int threads, size_t memory, const Body& body) {
  constexpr int64_t most = 0x7fffffff;  // blocks along x
  if (blocks > most) throw Error("too many blocks for one launch");
  if (threads > most_threads<Body>) throw Error("more threads than the kernel is bounded to");
  if (memory > usual_memory) {
    check(cudaFuncSetAttribute(run_body<Block, Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(memory)));
  }
  run_body<Block><<<static_cast<unsigned>(blocks), threads, memory,
                    static_cast<cudaStream_t>(context.stream)>>>(body);
  check(cudaGetLastError());
}

}  // namespace gradlint::device
