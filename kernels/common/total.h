// A sum of many terms whose error does not grow with their number.
#pragma once

#include "target.h"

namespace gradlint::GRADLINT_SPACE {

// Keeps what each addition rounds off (the error-free sum of Knuth, The Art of Computer
// Programming 2, 4.2.2, theorem B) and adds it in the end.
template <class W>
struct Total {
  W sum = 0;
  W lost = 0;

  GRADLINT_BOTH void add(W term) {
    const W next = sum + term;
    const W added = next - sum;
    lost += (sum - (next - added)) + (term - added);
    sum = next;
  }

  GRADLINT_BOTH W value() const {
    // After an overflow to infinity what was lost is NaN.
    return lost - lost == 0 ? sum + lost : sum;
  }
};

// A sum in a type so much wider than its terms that nothing need be kept.
template <class W>
struct PlainTotal {
  W sum = 0;

  GRADLINT_BOTH void add(W term) { sum += term; }
  GRADLINT_BOTH W value() const { return sum; }
};

}  // namespace gradlint::GRADLINT_SPACE
