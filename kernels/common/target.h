// One source, two compilers: nvcc makes the CUDA kernels of it, g++ those of the CPU.
//
// GRADLINT_DEVICE is the header of what many threads of a block need, and GRADLINT_DEVICE_CODE is
// defined while the code that they run is compiled. Neither is on the CPU, where a block has one
// thread; tests define both there, with threads of their own.
#pragma once

#ifdef __CUDACC__
#define GRADLINT_BOTH __host__ __device__ __forceinline__
#define GRADLINT_SPACE cuda
#define GRADLINT_UNROLLED _Pragma("unroll")
#define GRADLINT_DEVICE "device.h"
#else
#define GRADLINT_BOTH inline
#define GRADLINT_SPACE cpu
#define GRADLINT_UNROLLED
#endif

#ifdef __CUDA_ARCH__
#define GRADLINT_DEVICE_CODE
#endif
