// The tensors that a kernel walks together: their memory, and what stands where in it.
#pragma once

#include "arrays.h"
#include "division.h"
#include "dtypes.h"
#include "packs.h"

namespace gradlint::GRADLINT_SPACE {

// Elements: kernels multiply a stride by their number of threads, at most 1024, in 31 bits.
constexpr int64_t line_stride = int64_t{1} << 20;

// How tensors that are walked together are read.
enum class Access {
  packs,         // one axis; each tensor dense and aligned to 16 bytes, or one element for all
  row_packs,     // the same along axis 0, which is made of whole packs: positions count packs
  line,          // one by one, on one axis with strides of at most line_stride
  elements,      // one by one, with positions and offsets of 31 bits
  far_elements,  // one by one, anywhere
};

// N operands of element type T.
template <class T, int N>
struct Operands {
  Elements elements;  // where access is row_packs, axis 0 counts packs
  Access access;
  Divisor divisors[max_axes];  // by the lengths of the axes, where offsets are small

  explicit Operands(const Elements& walked) : elements(walked), access(access_to(walked)) {
    if (access == Access::row_packs) {
      elements.count /= size;
      elements.shape[0] /= size;
      for (int k = 0; k < N; ++k) elements.strides[k][0] *= size;
    }
    for (int axis = 0; axis < elements.axes && small(walked); ++axis) {
      const int64_t length = elements.shape[axis] > 0 ? elements.shape[axis] : 1;
      divisors[axis] = Divisor(static_cast<uint32_t>(length));
    }
  }

  GRADLINT_BOTH T* data(int operand) const { return static_cast<T*>(elements.data[operand]); }

  // The pack of an operand from `offset` on.
  GRADLINT_BOTH Words words(int operand, int64_t offset) const {
    if (elements.strides[operand][0] != 0) return read_words(data(operand) + offset);
    return words_of(filled_pack(data(operand)[offset]));
  }

  // Where the element at `position`, or the pack of that number, is in each operand.
  GRADLINT_BOTH void offsets(int64_t position, int64_t (&result)[N]) const {
    if (elements.axes == 1) {
      for (int k = 0; k < N; ++k) result[k] = position * elements.strides[k][0];
      return;
    }
    uint32_t rest = static_cast<uint32_t>(position), found[N];
    for (int k = 0; k < N; ++k) found[k] = 0;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int axis = 0; axis < elements.axes; ++axis) {
      const bool last = axis + 1 == elements.axes;
      const uint32_t above = last ? 0 : divisors[axis].quotient(rest);
      const uint32_t along = rest - above * static_cast<uint32_t>(elements.shape[axis]);
      for (int k = 0; k < N; ++k) {
        found[k] += along * static_cast<uint32_t>(elements.strides[k][axis]);
      }
      rest = above;
    }
    for (int k = 0; k < N; ++k) result[k] = found[k];
  }

  // The same for positions and offsets of any size.
  GRADLINT_BOTH void far_offsets(int64_t position, int64_t (&result)[N]) const {
    for (int k = 0; k < N; ++k) result[k] = 0;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int axis = 0; axis < elements.axes; ++axis) {
      const bool last = axis + 1 == elements.axes;
      const int64_t above = last ? 0 : quotient(position, elements.shape[axis]);
      const int64_t along = position - above * elements.shape[axis];
      for (int k = 0; k < N; ++k) result[k] += along * elements.strides[k][axis];
      position = above;
    }
  }

 private:
  static constexpr int size = Pack<T>::size;
  static constexpr int64_t limit = 0x7fffffff;

  static Access access_to(const Elements& walked) {
    const bool line = walked.axes == 1 && on_line(walked);
    if (!line && !small(walked)) return Access::far_elements;
    const Access single = line ? Access::line : Access::elements;
    if (walked.axes == 0 || (walked.axes > 1 && walked.shape[0] % size != 0)) return single;
    for (int k = 0; k < N; ++k) {
      const int64_t* const strides = walked.strides[k];
      if (strides[0] == 0) continue;
      bool packed = reinterpret_cast<uintptr_t>(walked.data[k]) % alignof(Pack<T>) == 0;
      for (int axis = 1; axis < walked.axes; ++axis) packed = packed && strides[axis] % size == 0;
      if (strides[0] != 1 || !packed) return single;
    }
    return walked.axes == 1 ? Access::packs : Access::row_packs;
  }

  static bool on_line(const Elements& walked) {
    bool result = true;
    for (int k = 0; k < N; ++k) result = result && walked.strides[k][0] <= line_stride;
    return result;
  }

  // Whether positions and offsets have 31 bits.
  static bool small(const Elements& walked) {
    for (int k = 0; k < N; ++k) {
      int64_t reach = 0;
      for (int axis = 0; axis < walked.axes; ++axis) {
        const int64_t length = walked.shape[axis], stride = walked.strides[k][axis];
        if (length > limit || stride > limit || reach > limit) return false;
        reach += length * stride;
      }
      if (reach > limit) return false;
    }
    return walked.count <= limit;
  }
};

}  // namespace gradlint::GRADLINT_SPACE
