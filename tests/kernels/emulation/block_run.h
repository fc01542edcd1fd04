// The threads of one block, run one at a time: each until it waits for others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"
#include "order.h"
#include "races.h"
#include "shared_memory.h"

namespace gradlint::emulation {

constexpr int warp_size = 32;

// How often the threads of a launch waited.
struct Waits {
  int64_t barriers = 0;   // of a block
  int64_t exchanges = 0;  // of a warp, or of some of its lanes
};

class BlockRun {
 public:
  // Called before the blocks of a launch.
  void begin_launch();

  // Runs thread(t) for each of `threads` threads of the block, which share `memory` bytes.
  // Raises std::runtime_error where they wait for one another in vain, and for races.
  void run(int64_t block, int threads, size_t memory, Order& order,
           const std::function<void(int)>& thread);

  // For the threads, while they run.
  void barrier();
  void exchange(unsigned mask, int source, const void* value, void* result, size_t size);
  void* shared_array(const void* key, size_t size, size_t alignment);
  void access(const void* address, size_t size, bool write);
  int thread() const { return current_; }
  void* memory() { return memory_.launched(); }

  Waits waits;

 private:
  enum class State { ready, at_barrier, at_exchange, ended };

  struct Thread {
    State state;
    uintptr_t site;  // where in the program it waits
    // Of an exchange:
    unsigned mask;
    int source;  // the lane whose value it gets
    size_t size;
    double value, received;  // up to 8 bytes of any type
  };

  void go_on(int thread);
  void release_barrier();
  void release_exchange(int thread);
  bool takes_part(int thread, const Thread& asking) const;
  uintptr_t site() const;
  [[noreturn]] void fail(const std::string& what);
  std::string stuck() const;
  std::string doing(int thread) const;
  void set(int thread, State state);

  int64_t block_ = 0;
  int count_ = 0, current_ = 0, ended_ = 0;
  bool inside_ = false;  // whether a thread goes on now
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Thread> threads_;
  ThreadSet ready_;
  SharedMemory memory_;
  Races races_;
  std::string failure_;
};

}  // namespace gradlint::emulation
