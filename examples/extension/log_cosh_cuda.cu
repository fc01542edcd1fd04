// The kernels of a right operator in CUDA: y = log(cosh(x)), gx = g · tanh(x).
//
// They know nothing of torch, so that nvcc needs seconds for them; log_cosh_cuda.cpp binds them.
// Indices have 64 bits, the last block is masked, and each launch says on which stream it runs.
#include <cstdint>

namespace {

constexpr int block_size = 256;

template <class T>
__global__ void log_cosh_forward(int64_t count, const T* x, T* y) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const T size = x[i] < 0 ? -x[i] : x[i];
  y[i] = size + log1p(exp(-2 * size)) - log(T(2));
}

template <class T>
__global__ void log_cosh_backward(int64_t count, const T* x, const T* grad_output, T* grad_x) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) grad_x[i] = grad_output[i] * tanh(x[i]);
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + block_size - 1) / block_size);
}

}  // namespace

// `stream` is a cudaStream_t; `count` is not 0. Each returns the status of its launch.
#define LOG_COSH_LAUNCHERS(T, suffix)                                                             \
  int log_cosh_forward_##suffix(int64_t count, const T* x, T* y, void* stream) {                  \
    log_cosh_forward<T>                                                                           \
        <<<blocks_for(count), block_size, 0, static_cast<cudaStream_t>(stream)>>>(count, x, y);   \
    return cudaGetLastError();                                                                    \
  }                                                                                               \
  int log_cosh_backward_##suffix(int64_t count, const T* x, const T* grad_output, T* grad_x,      \
                                 void* stream) {                                                  \
    log_cosh_backward<T><<<blocks_for(count), block_size, 0, static_cast<cudaStream_t>(stream)>>>( \
        count, x, grad_output, grad_x);                                                           \
    return cudaGetLastError();                                                                    \
  }

LOG_COSH_LAUNCHERS(float, float)
LOG_COSH_LAUNCHERS(double, double)
