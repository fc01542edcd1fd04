// CUDA: what went wrong, as an exception.
#pragma once

#include <cstdio>
#include <exception>

namespace gradlint::device {

// An error of CUDA's. No std::runtime_error: <string> would take longer to compile than many a
// kernel.
class Error : public std::exception {
 public:
  explicit Error(const char* what) {
    std::snprintf(text_, sizeof(text_), "gradlint: CUDA error: %s", what);
  }

  const char* what() const noexcept override { return text_; }

 private:
  char text_[256];
};

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw Error(cudaGetErrorString(status));
}

}  // namespace gradlint::device
