// The tail of the normal distribution in float, by one exponential and one inverse; erfc, which is
// made for any accuracy at any place, takes more instructions than a GPU has time for beside the
// memory.
//
// tests/kernels/support/fit_normal_tail.py makes the polynomials anew.
#pragma once

#include "functions.h"

namespace gradlint::math {

// With z = |x|: Φ(−z) = bell·mills and φ(z) = bell / √(2π). Where bell is 0, so are they.
struct NormalTail {
  float z, bell, mills;
};

// e^(−z²/2) is 0 from 14.5 on. Infinity times 0 is kept away; NaN stays.
GRADLINT_BOTH float within_reach(float x) {
  constexpr float far = 20;
  const float z = fabs(x);
  return z > far ? far : z;
}

// For operators of tensors of T.
template <class T>
GRADLINT_BOTH NormalTail normal_tail(float x) {
  const float z = within_reach(x);

  // Mills' ratio Φ(−z)·e^(z²/2) as a polynomial in t, whose relative error is at most 4.2e-8 up to
  // z = 14.5, less than a rounding. It doubles or trebles a relative error of t: what is rounded
  // off in 1 + scale·z is made up for.
  constexpr float scale = 0.3203125f;
  const float sum = 1 + scale * z, t = inverse(sum, fma(scale, z, 1 - sum));
  float mills = -0.020814972f;
  mills = mills * t + 0.132237509f;
  mills = mills * t - 0.317043215f;
  mills = mills * t + 0.32125023f;
  mills = mills * t - 0.130128697f;
  mills = mills * t + 0.159558892f;
  mills = mills * t + 0.0967983752f;
  mills = mills * t + 0.130596533f;
  mills = mills * t + 0.127535731f;
  mills = mills * t + 9.63427374e-06f;

  // z² = square + rest exactly. Without the rest, the exponential of a large square would lose as
  // many digits as the square has before its point.
  const float square = z * z, rest = fma(z, z, -square);
  const float coarse = exp(-0.5f * square);
  return {z, fma(-0.5f * rest, coarse, coarse), mills};
}

// For 16 bits, of which the last is worth 4.9e-4: a relative error of 1.5e-5 does not matter.
GRADLINT_BOTH NormalTail short_normal_tail(float x) {
  const float z = within_reach(x), t = near_inverse(1 + 0.359375f * z);
  float mills = -0.098012194f;
  mills = mills * t + 0.254628062f;
  mills = mills * t + 0.0349396579f;
  mills = mills * t + 0.168345571f;
  mills = mills * t + 0.13991563f;
  mills = mills * t + 0.000186968624f;
  return {z, near_exp(-0.5f, z * z), mills};
}

template <>
GRADLINT_BOTH NormalTail normal_tail<Half>(float x) {
  return short_normal_tail(x);
}

template <>
GRADLINT_BOTH NormalTail normal_tail<Bfloat16>(float x) {
  return short_normal_tail(x);
}

}  // namespace gradlint::math
