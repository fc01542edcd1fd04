#include "block_run.h"

#include <cstring>
#include <stdexcept>

namespace gradlint::emulation {

void BlockRun::begin_launch() {
  waits = {};
  races_.begin();
}

void BlockRun::run(int64_t block, int threads, size_t memory, Order& order,
                   const std::function<void(int)>& thread) {
  block_ = block;
  count_ = threads;
  ended_ = 0;
  failure_.clear();
  memory_.begin(memory);
  threads_.assign(threads, Thread{});
  ready_ = {};
  while (static_cast<int>(fibers_.size()) < threads) fibers_.push_back(std::make_unique<Fiber>());
  for (int t = 0; t < threads; ++t) {
    set(t, State::ready);
    fibers_[t]->begin([&thread, t] { thread(t); });
  }
  while (ended_ < threads) {
    if (ready_.empty()) {
      release_barrier();
    } else {
      go_on(order.chosen(ready_));
    }
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }
  if (!memory_.whole()) throw std::runtime_error("shared memory was written out of bounds");
}

void BlockRun::go_on(int thread) {
  current_ = thread;
  inside_ = true;
  fibers_[thread]->run();
  inside_ = false;
  if (fibers_[thread]->ended()) {
    set(thread, State::ended);
    ++ended_;
  }
}

void BlockRun::barrier() {
  threads_[current_].site = site();
  set(current_, State::at_barrier);
  fibers_[current_]->wait();
}

void BlockRun::release_barrier() {
  for (const Thread& thread : threads_) {
    if (thread.state != State::at_barrier || thread.site != threads_[0].site) {
      failure_ = stuck();
      return;
    }
  }
  for (int t = 0; t < count_; ++t) set(t, State::ready);
  ++waits.barriers;
}

void BlockRun::exchange(unsigned mask, int source, const void* value, void* result, size_t size) {
  const int thread = current_, lane = thread % warp_size;
  Thread& own = threads_[thread];
  if ((mask >> lane & 1) == 0) fail("a lane exchanges that is not in its own mask");
  if ((mask >> source & 1) == 0) fail("a lane takes the value of one that is not in the mask");
  own.site = site();
  own.mask = mask;
  own.source = source;
  own.size = size;
  std::memcpy(&own.value, value, size);
  set(thread, State::at_exchange);
  release_exchange(thread);
  fibers_[thread]->wait();
  std::memcpy(result, &own.received, size);
}

// Where `thread` was the last that others had waited for.
void BlockRun::release_exchange(int thread) {
  const Thread asking = threads_[thread];
  const int first = thread / warp_size * warp_size;
  for (int lane = 0; lane < warp_size; ++lane) {
    if ((asking.mask >> lane & 1) != 0 && !takes_part(first + lane, asking)) return;
  }
  for (int lane = 0; lane < warp_size; ++lane) {
    if ((asking.mask >> lane & 1) == 0) continue;
    Thread& other = threads_[first + lane];
    other.received = threads_[first + other.source].value;
    set(first + lane, State::ready);
  }
  ++waits.exchanges;
}

bool BlockRun::takes_part(int thread, const Thread& asking) const {
  if (thread >= count_) return false;
  const Thread& other = threads_[thread];
  return other.state == State::at_exchange && other.mask == asking.mask &&
         other.size == asking.size && other.site == asking.site;
}

void* BlockRun::shared_array(const void* key, size_t size, size_t alignment) {
  void* const array = memory_.array(key, size, alignment);
  if (array == nullptr) fail("more shared memory than a block has");
  return array;
}

// Told of by code that is watched (races.h).
void BlockRun::access(const void* address, size_t size, bool write) {
  if (!inside_ || fibers_[current_]->holds(address)) return;  // its stack is a thread's own
  const Access now{static_cast<int>(block_), static_cast<int>(waits.barriers), current_};
  const std::string wrong = races_.noted(now, write, memory_.holds(address), address, size);
  if (!wrong.empty()) fail(wrong);
}

// The running thread's return addresses in one number: two threads wait at the same place if they
// have come there by the same calls. Frame pointers must be kept.
uintptr_t BlockRun::site() const {
  constexpr uintptr_t factor = 1099511628211u;  // of the hash function FNV-1a
  uintptr_t result = 0;
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  while (frame != fibers_[current_]->bottom()) {
    result = (result ^ frame[1]) * factor;
    frame = reinterpret_cast<const uintptr_t*>(frame[0]);
  }
  return result;
}

// The block is left as it is: none of its threads goes on.
void BlockRun::fail(const std::string& what) {
  failure_ = "thread " + std::to_string(current_) + ": " + what;
  fibers_[current_]->wait();
  throw std::logic_error("a thread of a block that had failed went on");
}

// Why none goes on: the first thread that waits, and the first that it waits for in vain.
std::string BlockRun::stuck() const {
  int waiting = 0;
  while (threads_[waiting].state == State::ended) ++waiting;
  const Thread& own = threads_[waiting];
  const bool at_barrier = own.state == State::at_barrier;
  const int warp = waiting / warp_size * warp_size;
  for (int t = at_barrier ? 0 : warp; t < (at_barrier ? count_ : warp + warp_size); ++t) {
    const bool came = at_barrier ? threads_[t].state == own.state && threads_[t].site == own.site
                                 : (own.mask >> (t - warp) & 1) == 0 || takes_part(t, own);
    if (came) continue;
    return "thread " + std::to_string(waiting) + " waits at " +
           (at_barrier ? "a barrier" : "an exchange of its warp") + " for thread " +
           std::to_string(t) + ", which " + doing(t);
  }
  return "no thread goes on";
}

// What a thread does that others wait for in vain.
std::string BlockRun::doing(int thread) const {
  if (thread >= count_) return "does not exist";
  switch (threads_[thread].state) {
    case State::at_barrier:
      return "waits at a barrier elsewhere";
    case State::at_exchange:
      return "waits at an exchange elsewhere";
    case State::ended:
      return "has ended";
    case State::ready:
      return "could go on";
  }
  return "is unknown";
}

void BlockRun::set(int thread, State state) {
  threads_[thread].state = state;
  if (state == State::ready) {
    ready_.add(thread);
  } else {
    ready_.remove(thread);
  }
}

}  // namespace gradlint::emulation
