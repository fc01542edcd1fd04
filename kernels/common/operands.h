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

// n / divisor for 0 ≤ n < 2³¹ by a product and a shift: Granlund and Montgomery 1994, "Division by
// invariant integers using multiplication", figure 4.1.
struct Divisor {
  uint32_t multiplier = 0;
  int shift = 0;

  Divisor() = default;

  explicit Divisor(uint32_t divisor) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<uint32_t>(
        (uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor) / divisor + 1);
  }

  GRADLINT_BOTH uint32_t quotient(uint32_t n) const {
    const uint32_t high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
    return (high + n) >> shift;
  }
};

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
