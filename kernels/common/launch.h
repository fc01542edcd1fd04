// Running a body by many blocks: on CUDA by as many threads as a block has, on the CPU by one each.
#pragma once

#include "block.h"

#ifndef GRADLINT_DEVICE
#include <vector>
#endif

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE

// Runs body(block) for `blocks` blocks of `threads` threads (a multiple of the warp size).
template <class Body>
void launch(const Context& context, int64_t blocks, int threads, size_t memory, const Body& body) {
  if (blocks == 0) return;  // an empty grid is an error of CUDA's
  device::start<Block>(context, blocks, threads, memory, body);
}

#else

template <class Body>
struct HostLaunch {
  const Body& body;
  int64_t blocks;
  size_t memory;

  static void run(const void* state, int64_t first, int64_t last) {
    const HostLaunch& self = *static_cast<const HostLaunch*>(state);
    std::vector<double> memory((self.memory + sizeof(double) - 1) / sizeof(double));
    for (int64_t index = first; index < last; ++index) {
      self.body(Block{index, self.blocks, 0, 1, memory.data()});
    }
  }
};

// Runs body(block) for `blocks` blocks of one thread each, spread over the CPU's cores.
template <class Body>
void launch(const Context& context, int64_t blocks, int, size_t memory, const Body& body) {
  const HostLaunch<Body> state{body, blocks, memory};
  context.parallel_for(blocks, &HostLaunch<Body>::run, &state);
}

#endif

}  // namespace gradlint::GRADLINT_SPACE
