// Divisions of positions, which are slow on a GPU.
#pragma once

#include <cstdint>

#include "target.h"

namespace gradlint {

// a / b of numbers that are not negative. Most tensors need only 32 bits, whose division is
// several times as fast.
GRADLINT_BOTH int64_t quotient(int64_t a, int64_t b) {
  constexpr int64_t limit = 0x7fffffff;
  return a <= limit && b <= limit ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}

// n / divisor for 0 ≤ n < 2³¹ by a product and a shift: Granlund and Montgomery 1994, "Division by
// invariant integers using multiplication", figure 4.1.
struct Divisor {
  uint32_t multiplier = 0;
  int shift = 0;

  Divisor() = default;

  explicit Divisor(uint32_t divisor) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<uint32_t>(
        (uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor) / divisor + 1);
  }

  GRADLINT_BOTH uint32_t quotient(uint32_t n) const {
    const uint32_t high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace gradlint
