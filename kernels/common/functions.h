// Functions of the types that elements are computed in, each as exact as its operators need it, in
// as few instructions of a GPU as that takes.
#pragma once

#include "numbers.h"

namespace gradlint {
namespace math {

#define GRADLINT_MATH(name)                                            \
  GRADLINT_BOTH float name(float value) { return ::name##f(value); }   \
  GRADLINT_BOTH double name(double value) { return ::name(value); }
GRADLINT_MATH(exp)
GRADLINT_MATH(expm1)
GRADLINT_MATH(log)
GRADLINT_MATH(log1p)
GRADLINT_MATH(sqrt)
GRADLINT_MATH(erf)
GRADLINT_MATH(erfc)
GRADLINT_MATH(tanh)
GRADLINT_MATH(floor)
GRADLINT_MATH(fabs)
#undef GRADLINT_MATH

// |magnitude| with the sign of `sign`
GRADLINT_BOTH float copysign(float magnitude, float sign) { return ::copysignf(magnitude, sign); }
GRADLINT_BOTH double copysign(double magnitude, double sign) { return ::copysign(magnitude, sign); }

// a·b + c, rounded once
GRADLINT_BOTH float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
GRADLINT_BOTH double fma(double a, double b, double c) { return ::fma(a, b, c); }

// 1 / d to some units in the last place, for d from 1 to 2¹⁰⁰: without the branches for extreme
// numbers that a division has on a GPU.
GRADLINT_BOTH float near_inverse(float d) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(d));
  return result;
#else
  return 1 / d;
#endif
}

// exp(factor·x), the factor a constant and the product at most 70, with a relative error of about
// 10⁻⁷ times the product. Three instructions: the exponent is raised by 24 and the result lowered
// again, so that numbers below the smallest normal one are not lost.
GRADLINT_BOTH float near_exp(float factor, float x) {
#ifdef __CUDA_ARCH__
  constexpr float log2_e = 1.4426950408889634f, lowered = 5.9604644775390625e-08f;  // 2⁻²⁴
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(fma(factor * log2_e, x, 24.0f)));
  return result * lowered;
#else
  return ::expf(factor * x);
#endif
}

// exp(x) for x of at most 70, as exact as an operator of tensors of T needs it.
template <class T>
GRADLINT_BOTH Wide<T> exp_for(Wide<T> x) {
  if constexpr (sizeof(T) == 2) {
    return near_exp(1, x);
  } else {
    return exp(x);
  }
}

// 1 / (d + rest), for d from 1 to 2¹⁰⁰ and a rest as large as a rounding of d.
GRADLINT_BOTH float inverse(float d, float rest = 0) {
  const float near = near_inverse(d);
  return fma(near, fma(-near, rest, fma(-near, d, 1.0f)), near);
}

GRADLINT_BOTH double inverse(double d) { return 1 / d; }

// 1 / √d, to two units in the last place
GRADLINT_BOTH float inverse_root(float d) {
#ifdef __CUDA_ARCH__
  return ::rsqrtf(d);
#else
  return 1 / sqrt(d);
#endif
}

GRADLINT_BOTH double inverse_root(double d) { return 1 / sqrt(d); }

// The logistic function σ(x) = 1 / (1 + e⁻ˣ) and σ(−x) = 1 − σ(x), each with all its digits.
template <class W>
struct Logistic {
  W at, opposite;
};

// For operators of tensors of T. By one exponential, which does not overflow on either side.
template <class T>
GRADLINT_BOTH Logistic<Wide<T>> logistic(Wide<T> x) {
  using W = Wide<T>;
  const W small = exp_for<T>(-fabs(x));
  W larger;
  if constexpr (sizeof(T) == 2) {
    larger = near_inverse(1 + small);
  } else {
    larger = inverse(1 + small);
  }
  const W smaller = small * larger;
  return x >= 0 ? Logistic<W>{larger, smaller} : Logistic<W>{smaller, larger};
}

// factor·x, and 0 where the factor is 0: for a factor that goes to 0 faster than x to infinity.
template <class W>
GRADLINT_BOTH W vanishing(W factor, W x) {
  return factor == 0 ? W(0) : factor * x;
}

// The larger of two numbers; NaN where either is.
template <class W>
GRADLINT_BOTH W larger(W a, W b) {
  return a > b || a != a ? a : b;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// One instruction in place of three (PTX ISA, "max").
template <>
GRADLINT_BOTH float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
#endif

}  // namespace math
}  // namespace gradlint
