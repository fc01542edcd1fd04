// A function with a stack of its own, which can wait in the midst of its work.
#pragma once

#include <setjmp.h>

#include <cstddef>
#include <functional>

namespace gradlint::emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called outside of it: the next run() begins `work`, whatever the fiber was at before.
  void begin(std::function<void()> work);

  // Called outside of it: goes on until it waits or has ended.
  void run();

  // Called inside of it: back to run().
  void wait();

  bool ended() const { return ended_; }

  // Whether `address` is in its stack.
  bool holds(const void* address) const;

  // What a walk up its stack ends at.
  const void* bottom() const { return bottom_; }

 private:
  static void enter(unsigned high, unsigned low);

  std::function<void()> work_;
  bool fresh_ = true;
  bool ended_ = true;
  const void* bottom_ = nullptr;
  void* stack_;
  size_t begins_before_;  // its end, in bytes
  jmp_buf inside_, outside_;
};

}  // namespace gradlint::emulation
