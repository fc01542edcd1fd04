#include "launch.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

namespace gradlint::emulation {
namespace {

std::mutex mutex;
std::atomic<int> order_kind{static_cast<int>(Order::Kind::ascending)};
std::atomic<uint64_t> order_seed{0};
std::atomic<int> processor_count{132};  // of an H200
std::atomic<int64_t> last_blocks{std::numeric_limits<int64_t>::max()};

std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

// The limits of CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
void check(int64_t blocks, int threads, int most, size_t memory) {
  constexpr int64_t most_blocks = 0x7fffffff;
  constexpr int most_threads = 1024;
  if (blocks < 1 || blocks > most_blocks) throw std::runtime_error("a grid of no possible size");
  if (threads < 1 || threads > most_threads) throw std::runtime_error("too many threads, or none");
  if (threads > most) throw std::runtime_error("more threads than the kernel is bounded to");
  if (threads % warp_size != 0) throw std::runtime_error("a block of warps that are not whole");
  if (memory > SharedMemory::limit) throw std::runtime_error("too much shared memory");
}

}  // namespace

Kernel& kernel_of(const std::type_info& body) {
  char* const readable = abi::__cxa_demangle(body.name(), nullptr, nullptr, nullptr);
  const std::string name = readable != nullptr ? readable : body.name();
  std::free(readable);
  const std::lock_guard<std::mutex> lock(mutex);
  Kernel& kernel = kernels()[name];
  kernel.name = name;
  return kernel;
}

int processors() { return processor_count; }

BlockRun& running() {
  static thread_local BlockRun run;
  return run;
}

void run(Kernel& kernel, int64_t blocks, int threads, int most, size_t memory,
         const std::function<void(int64_t, int)>& thread) {
  BlockRun& block_run = running();
  block_run.begin_launch();
  Order order(static_cast<Order::Kind>(order_kind.load()), order_seed);
  int64_t block = 0;
  try {
    check(blocks, threads, most, memory);
    const int64_t count = std::min(blocks, last_blocks.load());
    for (int64_t i = 0; i < count; ++i) {
      block = blocks - count + order.block(i, count);
      block_run.run(block, threads, memory, order, [&](int t) { thread(block, t); });
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("emulated CUDA: " + kernel.name + ": block " +
                             std::to_string(block) + ": " + error.what());
  }
  const std::lock_guard<std::mutex> lock(mutex);
  ++kernel.launches;
  if (blocks > kernel.most_blocks) kernel.most_blocks = blocks;
  if (threads > kernel.most_threads) kernel.most_threads = threads;
  kernel.waits.barriers += block_run.waits.barriers;
  kernel.waits.exchanges += block_run.waits.exchanges;
}

}  // namespace gradlint::emulation

void emulation_order(int kind, uint64_t seed) {
  gradlint::emulation::order_kind = kind;
  gradlint::emulation::order_seed = seed;
}

void emulation_processors(int count) { gradlint::emulation::processor_count = count; }

void emulation_last_blocks(int64_t count) { gradlint::emulation::last_blocks = count; }

const char* emulation_kernels() {
  static std::string text;
  const std::lock_guard<std::mutex> lock(gradlint::emulation::mutex);
  text.clear();
  for (const auto& [name, kernel] : gradlint::emulation::kernels()) {
    for (const int64_t number : {kernel.launches, kernel.most_blocks, int64_t{kernel.most_threads},
                                 kernel.waits.barriers, kernel.waits.exchanges}) {
      text += std::to_string(number) + " ";
    }
    text += name + "\n";
  }
  return text.c_str();
}
