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

// The maximum over `row` of body(position, in), the same in each lane of its team; −∞ of an empty
// one.
template <int In, class Row, class Body>
GRADLINT_BOTH typename Row::W max_of_row(const Row& row, const Team& team, const Body& body) {
  using W = typename Row::W;
  W largest = -static_cast<W>(INFINITY);
  row.each([&](int64_t position, const W(&in)[In]) {
    largest = math::larger(body(position, in), largest);
  });
  return team.max(largest);
}

}  // namespace gradlint::GRADLINT_SPACE
