// Which of several threads that could go on does.
#pragma once

#include <cstdint>
#include <random>

namespace gradlint::emulation {

// A set of the threads of a block.
class ThreadSet {
 public:
  void add(int thread) {
    lanes_[thread / word] |= bit(thread % word);
    warps_ |= bit(thread / word);
  }

  void remove(int thread) {
    uint32_t& lanes = lanes_[thread / word];
    lanes &= ~bit(thread % word);
    if (lanes == 0) warps_ &= ~bit(thread / word);
  }

  bool empty() const { return warps_ == 0; }

  // Of a set that is not empty: the first, the last, the first from `thread` on around the end.
  int first() const;
  int last() const;
  int first_from(int thread) const;

 private:
  static constexpr int word = 32;  // bits

  static uint32_t bit(int i) { return uint32_t{1} << i; }

  uint32_t warps_ = 0;  // those with a lane
  uint32_t lanes_[word] = {};
};

class Order {
 public:
  enum class Kind : int { ascending, descending, shuffled };

  Order(Kind kind, uint64_t seed) : kind_(kind), random_(seed) {}

  // One of a set that is not empty.
  int chosen(const ThreadSet& set);

  // The i-th of `count` blocks to run.
  int64_t block(int64_t i, int64_t count) const;

 private:
  Kind kind_;
  std::minstd_rand random_;
};

}  // namespace gradlint::emulation
