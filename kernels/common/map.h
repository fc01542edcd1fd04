// Element by element over tensors of one shape and of any strides.
#pragma once

#include <type_traits>

#include "launch.h"
#include "operands.h"

namespace gradlint::GRADLINT_SPACE {

#ifdef GRADLINT_DEVICE
constexpr int map_threads = 256;
constexpr int map_packs = 2;  // 16-byte accesses of a thread for each operand (heuristic: two in
                              // flight hide more of the memory's latency than one)
constexpr int map_unrolled = map_packs;
constexpr int map_elements = 8;  // single accesses in flight for each operand (heuristic)
constexpr int map_singles = 2 * map_elements;  // elements of a thread that are read one by one
#else
constexpr int map_threads = 1;
constexpr int map_packs = 512;  // 8 KiB an operand: stays in the first-level cache
constexpr int map_unrolled = 1;
constexpr int map_elements = 1;
constexpr int map_singles = 4096;
#endif

// body(in, out): W in[In], W out[Out] are the operands' elements at one position. How the tensors
// are read is known when the kernel is compiled: what one way needs takes no registers from another.
template <class T, int Out, int In, class Body, Access access>
struct Map {
  using W = Wide<T>;
  static constexpr int size = Pack<T>::size;
  static constexpr int most_threads = map_threads;
  static constexpr int width = access == Access::packs ? size : 1;  // positions at once
  static constexpr bool single = access > Access::row_packs;
  static constexpr int unrolled = access == Access::far_elements ? 1
                                  : single                       ? map_elements
                                                                 : map_unrolled;
  static constexpr int64_t chunk = int64_t{map_threads} * (access == Access::packs ? map_packs * size
                                                           : single ? map_singles
                                                                    : map_packs);

  Operands<T, Out + In> operands;
  Body body;

  int64_t blocks() const { return (operands.elements.count + chunk - 1) / chunk; }

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t count = operands.elements.count, first = block.index * chunk;
    const int64_t last = first + chunk < count ? first + chunk : count;
    const int64_t whole = first + (last - first) / width * width;
    const int64_t step = int64_t{block.threads} * width;
    int64_t i = first + int64_t{block.thread} * width;
    if constexpr (access == Access::line) {
      line(i, static_cast<int>(last - first) - block.thread);
    } else {
      for (; i + (unrolled - 1) * step < whole; i += unrolled * step) {
        positions<unrolled>(i, step);
      }
      if constexpr (unrolled > 1) {
        for (; i < whole; i += step) positions<1>(i, step);
      }
    }
    if constexpr (access == Access::packs) {
      for (i = whole + block.thread; i < last; i += block.threads) {
        int64_t offsets[Out + In];
        operands.offsets(i, offsets);
        T in[In];
        for (int k = 0; k < In; ++k) in[k] = operands.data(Out + k)[offsets[Out + k]];
        one(in, offsets);
      }
    }
  }

 private:
  // Single elements along one axis, from i on, each map_threads behind the one before; `left` are
  // there from i to the end of the block's. An address is a thread's first one and a product of 32
  // bits, which is one instruction; a sum of 64 bits takes two.
  GRADLINT_BOTH void line(int64_t i, int left) const {
    T* at[Out + In];
    int apart[Out + In];
    for (int k = 0; k < Out + In; ++k) {
      at[k] = operands.data(k) + i * operands.elements.strides[k][0];
      apart[k] = map_threads * static_cast<int>(operands.elements.strides[k][0]);
    }
    int own = left > 0 ? (left + map_threads - 1) / map_threads : 0;
    for (; own >= map_elements; own -= map_elements) some_of_line<map_elements>(at, apart);
    if constexpr (map_elements > 1) {
      for (; own > 0; --own) some_of_line<1>(at, apart);
    }
  }

  template <int Count>
  GRADLINT_BOTH void some_of_line(T* (&at)[Out + In], const int (&apart)[Out + In]) const {
    T in[Count][In];
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) {
        in[p][k] = at[Out + k][int64_t{apart[Out + k]} * p];
      }
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      W from[In], to[Out];
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) from[k] = widened(in[p][k]);
      body(from, to);
      GRADLINT_UNROLLED for (int k = 0; k < Out; ++k) {
        at[k][int64_t{apart[k]} * p] = narrowed<T>(to[k]);
      }
    }
    for (int k = 0; k < Out + In; ++k) at[k] += int64_t{apart[k]} * Count;
  }

  // Count positions from i on, `step` apart: all are on their way before the first is used.
  template <int Count>
  GRADLINT_BOTH void positions(int64_t i, int64_t step) const {
    using Read = std::conditional_t<single, T, Words>;
    int64_t offsets[Count][Out + In];
    Read in[Count][In];
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      place(i + p * step, offsets[p]);
      GRADLINT_UNROLLED for (int k = 0; k < In; ++k) {
        const int64_t at = offsets[p][Out + k];
        if constexpr (single) {
          in[p][k] = operands.data(Out + k)[at];
        } else {
          in[p][k] = operands.words(Out + k, at);
        }
      }
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      if constexpr (single) {
        one(in[p], offsets[p]);
      } else {
        pack(in[p], offsets[p]);
      }
    }
  }

  GRADLINT_BOTH void place(int64_t position, int64_t (&offsets)[Out + In]) const {
    if constexpr (access == Access::packs) {
      for (int k = 0; k < Out + In; ++k) {
        const bool dense = k < Out || operands.elements.strides[k][0] != 0;
        offsets[k] = dense ? position : 0;
      }
    } else if constexpr (access == Access::far_elements) {
      operands.far_offsets(position, offsets);
    } else {
      operands.offsets(position, offsets);
    }
  }

  GRADLINT_BOTH void pack(const Words (&in)[In], const int64_t (&offsets)[Out + In]) const {
    W from[In][size], to[Out][size];
    GRADLINT_UNROLLED for (int k = 0; k < In; ++k) widen_pack<T>(in[k], from[k]);
    GRADLINT_UNROLLED for (int e = 0; e < size; ++e) {
      W wide[In], results[Out];
      for (int k = 0; k < In; ++k) wide[k] = from[k][e];
      body(wide, results);
      for (int k = 0; k < Out; ++k) to[k][e] = results[k];
    }
    GRADLINT_UNROLLED for (int k = 0; k < Out; ++k) {
      write_words(operands.data(k) + offsets[k], narrow_pack<T>(to[k]));
    }
  }

  GRADLINT_BOTH void one(const T (&in)[In], const int64_t (&offsets)[Out + In]) const {
    W from[In], to[Out];
    for (int k = 0; k < In; ++k) from[k] = widened(in[k]);
    body(from, to);
    for (int k = 0; k < Out; ++k) operands.data(k)[offsets[k]] = narrowed<T>(to[k]);
  }
};

template <Access access, int Out, int In, class T, class Body>
void launch_map(const Context& context, const Operands<T, Out + In>& operands, const Body& body) {
  using Kernel = Map<T, Out, In, Body, access>;
  const Kernel kernel{operands, body};
  launch(context, kernel.blocks(), map_threads, 0, kernel);
}

// Runs body(in, out) at every position, with body = make(T{}) for the element type T; `elements`
// has Out outputs, then In inputs.
template <int Out, int In, class Make>
void map_by_type(const Context& context, const Elements& elements, const Make& make) {
  with_dtype(elements.dtype, [&](auto type) {
    using T = decltype(type);
    const auto body = make(type);
    const Operands<T, Out + In> operands(elements);
    switch (operands.access) {
      case Access::packs:
        return launch_map<Access::packs, Out, In>(context, operands, body);
      case Access::row_packs:
        return launch_map<Access::row_packs, Out, In>(context, operands, body);
      case Access::line:
        return launch_map<Access::line, Out, In>(context, operands, body);
      case Access::elements:
        return launch_map<Access::elements, Out, In>(context, operands, body);
      case Access::far_elements:
        return launch_map<Access::far_elements, Out, In>(context, operands, body);
    }
  });
}

// The same with one body for all types.
template <int Out, int In, class Body>
void map(const Context& context, const Elements& elements, const Body& body) {
  map_by_type<Out, In>(context, elements, [&](auto) { return body; });
}

}  // namespace gradlint::GRADLINT_SPACE
