// Vector accesses: 16 bytes of memory at once, the widest that a GPU has, and the elements in them.
#pragma once

#include "numbers.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

// A pack as it moves between memory and registers: elements of 16 bits would move one by one.
struct __attribute__((may_alias, aligned(16))) Words {
  uint32_t at[4];
};

template <class T>
GRADLINT_BOTH Pack<T> pack_of(const Words& words) {
  Pack<T> pack;
  memcpy(&pack, &words, sizeof(words));
  return pack;
}

// The elements of a pack, widened.
template <class T>
GRADLINT_BOTH void widen_pack(const Words& words, Wide<T> (&to)[Pack<T>::size]) {
  const Pack<T> pack = pack_of<T>(words);
  GRADLINT_UNROLLED for (int j = 0; j < Pack<T>::size; ++j) to[j] = widened(pack.at[j]);
}

// Two to a word, each with one instruction.
template <>
GRADLINT_BOTH void widen_pack<Bfloat16>(const Words& words, float (&to)[8]) {
  GRADLINT_UNROLLED for (int j = 0; j < 4; ++j) {
    to[2 * j] = numbers::float_of(words.at[j] << 16);
    to[2 * j + 1] = numbers::float_of(words.at[j] & 0xffff0000u);
  }
}

template <class T>
GRADLINT_BOTH Words words_of(const Pack<T>& pack) {
  Words words;
  memcpy(&words, &pack, sizeof(words));
  return words;
}

// The elements `from`, narrowed to a pack.
template <class T>
GRADLINT_BOTH Words narrow_pack(const Wide<T> (&from)[Pack<T>::size]) {
  Pack<T> pack;
  GRADLINT_UNROLLED for (int j = 0; j < Pack<T>::size; ++j) pack.at[j] = narrowed<T>(from[j]);
  return words_of(pack);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Two to a word, with one instruction (PTX ISA, "cvt": the first operand becomes the upper half).
template <>
GRADLINT_BOTH Words narrow_pack<Bfloat16>(const float (&from)[8]) {
  Words words;
  GRADLINT_UNROLLED for (int j = 0; j < 4; ++j) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(words.at[j]) : "f"(from[2 * j + 1]), "f"(from[2 * j]));
  }
  return words;
}

template <>
GRADLINT_BOTH Words narrow_pack<Half>(const float (&from)[8]) {
  Words words;
  GRADLINT_UNROLLED for (int j = 0; j < 4; ++j) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;"
        : "=r"(words.at[j]) : "f"(from[2 * j + 1]), "f"(from[2 * j]));
  }
  return words;
}
#endif

// A pack of one value.
template <class T>
GRADLINT_BOTH Pack<T> filled_pack(T value) {
  Pack<T> pack;
  for (int e = 0; e < Pack<T>::size; ++e) pack.at[e] = value;
  return pack;
}

// A pack in memory, read in one access of 16 bytes. The words are copied before anything looks at
// them: nvcc makes sixteen accesses of one byte of a memcpy from memory.
template <class T>
GRADLINT_BOTH Words read_words(const T* from) {
  const Words words = *reinterpret_cast<const Words*>(from);
  return words;
}

// The same to global memory, in one access. Left to itself, nvcc joins the four words only where
// it sees nothing between them that might be the same memory.
template <class T>
GRADLINT_BOTH void write_words(T* to, const Words& words) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(words.at[0]), "r"(words.at[1]),
                 "r"(words.at[2]), "r"(words.at[3])
               : "memory");
#else
  *reinterpret_cast<Words*>(to) = words;
#endif
}

}  // namespace gradlint::GRADLINT_SPACE
