// Launches of kernels: what is known of each kernel, and in which order its threads run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <typeinfo>

#include "block_run.h"

namespace gradlint::emulation {

// What became of the launches of a kernel so far.
struct Kernel {
  std::string name;
  int64_t launches = 0;
  int64_t most_blocks = 0;
  int most_threads = 0;
  Waits waits;
};

// The kernel that a type is the body of; each is known from the start of the program on.
Kernel& kernel_of(const std::type_info& body);

template <class Body>
struct Known {
  static inline Kernel& kernel = kernel_of(typeid(Body));
};

// Runs thread(block, t) for all threads of all blocks, of which one may have `most`. Raises std::runtime_error where CUDA would
// refuse the launch, where threads wait for one another in vain, and for races.
void run(Kernel& kernel, int64_t blocks, int threads, int most, size_t memory,
         const std::function<void(int64_t, int)>& thread);

// Multiprocessors of the device that is stood in for: what is split over them depends on it.
int processors();

// The block that is being run by the caller's thread of the system.
BlockRun& running();

}  // namespace gradlint::emulation

// For Python.
extern "C" {

// The order of the threads of a block: 0 ascending, 1 descending, 2 shuffled by the seed.
void emulation_order(int kind, uint64_t seed);

// How many multiprocessors the device has from now on.
void emulation_processors(int count);

// Of each launch only so many of its last blocks run from now on: what is too large to be walked
// goes wrong at its end.
void emulation_last_blocks(int64_t count);

// All kernels, a line each: launches, most blocks, most threads, barriers, exchanges, name.
const char* emulation_kernels();
}
