// Element types, the wider types that they are computed in, and the functions of those.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "target.h"

namespace gradlint {

// Storage of IEEE 754 binary16 and of bfloat16; all arithmetic is done in float. CUDA converts by
// the instructions that cuda_fp16.h and cuda_bf16.h have (PTX ISA, "cvt"): those headers would be a
// tenth of the time that a kernel takes to compile.
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

namespace numbers {

GRADLINT_BOTH uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

GRADLINT_BOTH float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace numbers

GRADLINT_BOTH double widened(double value) { return value; }

GRADLINT_BOTH float widened(float value) { return value; }

GRADLINT_BOTH float widened(Bfloat16 value) {
  return numbers::float_of(static_cast<uint32_t>(value.bits) << 16);
}

GRADLINT_BOTH float widened(Half value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) {  // infinity or NaN: the exponent of float is all ones too
    return numbers::float_of(sign | rest | 0x70000000u);
  }
  // 2^112 makes up for the two types' exponent biases, for subnormal numbers as well.
  const float magnitude = numbers::float_of(rest) * 5.192296858534828e+33f;
  return numbers::float_of(sign | numbers::bits_of(magnitude));
#endif
}

// `value` rounded to T, to nearest with ties to even.
template <class T, class W>
GRADLINT_BOTH T narrowed(W value);

template <>
GRADLINT_BOTH double narrowed<double, double>(double value) {
  return value;
}

template <>
GRADLINT_BOTH float narrowed<float, float>(float value) {
  return value;
}

template <>
GRADLINT_BOTH Bfloat16 narrowed<Bfloat16, float>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  Bfloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const uint32_t bits = numbers::bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>((bits >> 16) | 0x0040u)};  // NaN stays one
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

template <>
GRADLINT_BOTH Half narrowed<Half, float>(float value) {
#ifdef __CUDA_ARCH__
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const uint32_t bits = numbers::bits_of(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;  // NaN
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // from 65520 on everything rounds to infinity
  } else if (magnitude >= 0x38800000u) {
    const uint32_t rebased = magnitude - 0x38000000u;
    half = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  } else {
    // Subnormal in half: adding 0.5 lets float's own rounding drop the bits.
    half = numbers::bits_of(numbers::float_of(magnitude) + 0.5f) - 0x3f000000u;
  }
  return {static_cast<uint16_t>(sign | half)};
#endif
}

// a / b of numbers that are not negative. Division of 64 bits is slow on a GPU; most tensors need
// only 32.
GRADLINT_BOTH int64_t quotient(int64_t a, int64_t b) {
  constexpr int64_t limit = 0x7fffffff;
  return a <= limit && b <= limit ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}

// The type in which elements of type T are computed and accumulated.
template <class T>
using Wide = decltype(widened(T{}));

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
