// What rows that are held and rows that are read for each pass reduce alike.
#pragma once

#include "team.h"

namespace gradlint::GRADLINT_SPACE {

// Σ of the terms of a pack, by halves.
template <class W, int size>
GRADLINT_BOTH W sum_of_pack(W (&terms)[size]) {
  GRADLINT_UNROLLED for (int half = size / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) terms[j] += terms[j + half];
  }
  return terms[0];
}

}  // namespace gradlint::GRADLINT_SPACE
