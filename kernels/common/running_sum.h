// Long sums without long chains of additions.
#pragma once

#include <cstdint>

#include "target.h"

namespace gradlint::GRADLINT_SPACE {

// Σ term(i) over i = first, first + step, … < last, in runs: n terms lose about run + n/run
// roundings at worst, not n.
// Blocked summation: Higham, Accuracy and Stability of Numerical Algorithms, §4.2.
template <class W, class Term>
GRADLINT_BOTH W sum_in_runs(int64_t first, int64_t last, int64_t step, const Term& term) {
  constexpr int64_t run = 256;  // terms (heuristic: the square root of the longest usual sum)
  W total = 0;
  for (int64_t start = first; start < last; start += run * step) {
    const int64_t stop = start + run * step < last ? start + run * step : last;
    W sum = 0;
    for (int64_t i = start; i < stop; i += step) sum += term(i);
    total += sum;
  }
  return total;
}

}  // namespace gradlint::GRADLINT_SPACE
