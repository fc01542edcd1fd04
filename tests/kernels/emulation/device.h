// In place of kernels/common/device.h: CUDA's words for the C++ compiler. The threads of a block
// take turns.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/arrays.h"
#include "launch.h"

#define __device__
#define __forceinline__ inline

inline void __syncthreads() { gradlint::emulation::running().barrier(); }

// `value` of the lane whose number differs from the caller's in the bits of `distance`.
template <class W>
W __shfl_xor_sync(unsigned mask, W value, int distance) {
  static_assert(sizeof(W) <= 8);
  gradlint::emulation::BlockRun& block = gradlint::emulation::running();
  const int lane = block.thread() % gradlint::emulation::warp_size;
  W result;
  block.exchange(mask, lane ^ distance, &value, &result, sizeof(W));
  return result;
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  const int one = 0;
  __shfl_xor_sync(mask, one, 0);
}

inline unsigned long long __double_as_longlong(double value) {
  unsigned long long bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Threads take turns anyway; what is atomic is no race, and not watched.
template <class W>
__attribute__((no_sanitize("thread"))) W atomicExch(W* address, W value) {
  static_assert(sizeof(W) == 4 || sizeof(W) == 8);
  W before;
  std::memcpy(&before, address, sizeof(W));
  std::memcpy(address, &value, sizeof(W));
  return before;
}

namespace gradlint::device {

inline int processors(const Context&) { return emulation::processors(); }

inline size_t most_memory() { return emulation::SharedMemory::limit; }

template <class Array>
Array& shared() {
  static const char key = 0;
  return *static_cast<Array*>(
      emulation::running().shared_array(&key, sizeof(Array), alignof(Array)));
}

template <class Block, class Body>
int64_t resident(const Context&, int threads, size_t) {
  constexpr int most = 1024;  // threads of a processor that run at once
  return int64_t{most / threads} * emulation::processors();
}

template <class Block, class Body>
void start(const Context&, int64_t blocks, int threads, size_t memory, const Body& body) {
  emulation::run(emulation::Known<Body>::kernel, blocks, threads, most_threads<Body>, memory,
                 [&](int64_t block, int thread) {
                   body(Block{block, blocks, thread, threads, emulation::running().memory()});
                 });
}

}  // namespace gradlint::device
