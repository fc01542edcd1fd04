// The tensors that a kernel walks together: their memory, and what stands where in it.
#pragma once

#include "block.h"
#include "dtypes.h"

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

// A pack of one value.
template <class T>
GRADLINT_BOTH Pack<T> filled_pack(T value) {
  Pack<T> pack;
  for (int e = 0; e < Pack<T>::size; ++e) pack.at[e] = value;
  return pack;
}

template <class T>
GRADLINT_BOTH Pack<T> read_pack(const T* from) {
  return pack_of<T>(*reinterpret_cast<const Words*>(from));
}

template <class T>
GRADLINT_BOTH void write_pack(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Words*>(to) = words_of(pack);
}

// N operands of element type T.
template <class T, int N>
struct Operands {
  Elements elements;
  bool packed;  // each is dense and aligned to 16 bytes, or one element for all positions

  explicit Operands(const Elements& walked) : elements(walked), packed(walked.axes == 1) {
    for (int k = 0; k < N && packed; ++k) {
      const bool aligned = reinterpret_cast<uintptr_t>(elements.data[k]) % alignof(Pack<T>) == 0;
      packed = elements.strides[k][0] == 0 || (elements.strides[k][0] == 1 && aligned);
    }
  }

  GRADLINT_BOTH T* data(int operand) const { return static_cast<T*>(elements.data[operand]); }

  // The elements of an operand from `position` on, a multiple of the pack's size; where `packed`.
  GRADLINT_BOTH Pack<T> pack(int operand, int64_t position) const {
    const bool dense = elements.strides[operand][0] != 0;
    return pack_of<T>(dense ? *reinterpret_cast<const Words*>(data(operand) + position)
                            : words_of(filled_pack(*data(operand))));
  }

  // Where the element at `position` is in each operand.
  GRADLINT_BOTH void offsets(int64_t position, int64_t (&result)[N]) const {
    for (int k = 0; k < N; ++k) result[k] = 0;
    for (int axis = 0; axis < elements.axes; ++axis) {
      const bool last = axis + 1 == elements.axes;
      const int64_t above = last ? 0 : quotient(position, elements.shape[axis]);
      const int64_t along = position - above * elements.shape[axis];
      for (int k = 0; k < N; ++k) result[k] += along * elements.strides[k][axis];
      position = above;
    }
  }
};

}  // namespace gradlint::GRADLINT_SPACE
