// What the bindings hand to the kernels: memory, sizes and strides, without a torch type.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gradlint {

enum class Dtype : int { float64, float32, float16, bfloat16 };

// Runs body(state, first, last) for ranges that cover [0, blocks), in parallel.
using RangeBody = void (*)(const void* state, int64_t first, int64_t last);
using ParallelFor = void (*)(int64_t blocks, RangeBody body, const void* state);

// Where a kernel runs.
struct Context {
  ParallelFor parallel_for;  // CPU: the threads of the caller's runtime
  void* stream;              // CUDA: the current stream, a cudaStream_t
  int processors;            // CUDA: multiprocessors of the device
};

// Most threads of a block that a body is run by: as it says itself, or as many as CUDA allows.
template <class Body, class = void>
constexpr int most_threads = 1024;

template <class Body>
constexpr int most_threads<Body, std::void_t<decltype(Body::most_threads)>> = Body::most_threads;

constexpr int max_axes = 12;
constexpr int max_operands = 6;
constexpr int sum_blocks = 1024;  // that share a long sum (common/sum.h)

// Tensors of one shape that are walked together, outputs first; all of one dtype.
// Axis 0 is the fastest; strides are in elements, and 0 where a tensor is broadcast.
struct Elements {
  Dtype dtype;
  int operands;
  int axes;
  int64_t count;
  int64_t shape[max_axes];
  int64_t strides[max_operands][max_axes];
  void* data[max_operands];
};

// Numbers that an operator takes besides tensors.
struct Scalars {
  double at[4];
};

}  // namespace gradlint
