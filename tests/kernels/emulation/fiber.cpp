// getcontext() and its kin make a stack; setjmp() and longjmp() change between stacks without a
// call to the system, which would take most of the time.
#include "fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

namespace gradlint::emulation {
namespace {

constexpr size_t stack_size = 128 << 10;  // bytes; only what is touched takes memory

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber() {
  // Else all stacks would begin at the same places of the processor's caches.
  static std::atomic<size_t> stacks{0};
  begins_before_ = stacks++ % 64 * 320;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  stack_ = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack_, page(), PROT_NONE);  // stacks grow down to it: an overflow is no silent one
}

Fiber::~Fiber() { munmap(stack_, stack_size); }

void Fiber::begin(std::function<void()> work) {
  work_ = std::move(work);
  if (!ended_) fresh_ = true;  // its stack is that of work left behind
  ended_ = false;
}

void Fiber::run() {
  if (_setjmp(outside_) != 0) return;
  if (!fresh_) _longjmp(inside_, 1);
  fresh_ = false;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_;
  context.uc_stack.ss_size = stack_size - begins_before_;
  context.uc_link = nullptr;
  // makecontext() hands on integers of the size of int.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  setcontext(&context);
}

void Fiber::wait() {
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
}

bool Fiber::holds(const void* address) const {
  const auto* const first = static_cast<const char*>(stack_);
  return address >= first && address < first + stack_size;
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
  self->bottom_ = __builtin_frame_address(0);
  for (;;) {
    self->work_();
    self->ended_ = true;
    self->wait();
  }
}

}  // namespace gradlint::emulation
