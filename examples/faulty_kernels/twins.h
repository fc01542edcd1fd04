// What the faulty twins share: their arguments, and walking over elements.
//
// Every twin is compiled twice, into namespace faulty as it is, and with FIXED into namespace
// mended (see all.h). The same source makes the kernels of the CPU and of CUDA, as in kernels/.
#pragma once

#include "common/dtypes.h"
#include "common/launch.h"

// The tensors of one call; dense, of one dtype. `grad` is null in forward.
struct Call {
  gradlint::Dtype dtype;
  int64_t rows, columns;  // of x; its last axis has `columns` elements
  const void* grad;
  const void* x;
  void* workspace;  // as many elements as x has, where a twin asks for it
  void* result;     // y, or the gradient of x
};

namespace twins::GRADLINT_SPACE {

using gradlint::GRADLINT_SPACE::Block;
using gradlint::Context;
using gradlint::narrowed;
using gradlint::Wide;
using gradlint::widened;
using gradlint::GRADLINT_SPACE::launch;
using gradlint::GRADLINT_SPACE::with_dtype;

constexpr int threads = 256;

// result = f(g, x) at every element.
template <class T, class F>
struct Each {
  static constexpr int64_t chunk = 4 * threads;
  const T *grad, *x;
  T* result;
  int64_t count;
  F f;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t first = block.index * chunk;
    const int64_t last = first + chunk < count ? first + chunk : count;
    for (int64_t i = first + block.thread; i < last; i += block.threads) {
      const Wide<T> g = grad != nullptr ? widened(grad[i]) : Wide<T>(0);
      result[i] = narrowed<T>(f(g, widened(x[i])));
    }
  }
};

// The arguments of `call` as those of a kernel over elements.
template <class Kernel, class T, class F>
Kernel over(const Call& call, const F& f) {
  return {static_cast<const T*>(call.grad), static_cast<const T*>(call.x),
          static_cast<T*>(call.result), call.rows * call.columns, f};
}

template <template <class, class> class Kernel, class F>
void each(const Context& context, const Call& call, const F& f) {
  with_dtype(call.dtype, [&](auto type) {
    using T = decltype(type);
    using K = Kernel<T, F>;
    const auto kernel = over<K, T>(call, f);
    launch(context, (kernel.count + K::chunk - 1) / K::chunk, threads, 0, kernel);
  });
}

// A kernel that has one block for each row.
template <template <class> class Kernel>
void each_row(const Context& context, const Call& call, size_t memory = 0) {
  with_dtype(call.dtype, [&](auto type) {
    using T = decltype(type);
    const Kernel<T> kernel{static_cast<const T*>(call.grad), static_cast<const T*>(call.x),
                           static_cast<T*>(call.result), call.rows, call.columns};
    launch(context, call.rows, threads, memory, kernel);
  });
}

// y = x²
struct Square {
  template <class W>
  GRADLINT_BOTH W operator()(W, W x) const {
    return x * x;
  }
};

// gx = 2·x·g
struct SquareBackward {
  template <class W>
  GRADLINT_BOTH W operator()(W g, W x) const {
    return 2 * x * g;
  }
};

// The gradient of y = Σ x² along the rows: gx = 2·x·g
template <class T>
struct RowBackward {
  const T *grad, *x;
  T* result;
  int64_t rows, columns;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t start = block.index * columns;
    for (int64_t c = block.thread; c < columns; c += block.threads) {
      result[start + c] = narrowed<T>(2 * widened(x[start + c]) * widened(grad[block.index]));
    }
  }
};

}  // namespace twins::GRADLINT_SPACE
