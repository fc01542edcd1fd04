// Element types, and the wider types that they are computed in.
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

// The type in which elements of type T are computed and accumulated.
template <class T>
using Wide = decltype(widened(T{}));

}  // namespace gradlint
