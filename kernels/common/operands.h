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
    if (elements.strides[operand][0] != 0) {
      return *reinterpret_cast<const Pack<T>*>(data(operand) + position);
    }
    Pack<T> result;
    for (int e = 0; e < Pack<T>::size; ++e) result.at[e] = *data(operand);
    return result;
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
