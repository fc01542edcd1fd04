// One source, two compilers: nvcc makes the CUDA kernels of it, g++ those of the CPU.
#pragma once

#ifdef __CUDACC__
#define GRADLINT_BOTH __host__ __device__ __forceinline__
#define GRADLINT_SPACE cuda
#define GRADLINT_UNROLLED _Pragma("unroll")
#else
#define GRADLINT_BOTH inline
#define GRADLINT_SPACE cpu
#define GRADLINT_UNROLLED
#endif
