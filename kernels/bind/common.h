// From torch tensors to what the kernels take.
#pragma once

// Each function of ATen by its own header: all of them take as long to compile as an operator.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#ifdef GRADLINT_CUDA
// Not ATen/cuda/CUDAContext.h: it needs the headers of cuBLAS, cuSPARSE and cuSOLVER, which a
// toolkit that has nvcc may lack.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include "../kernels.h"

namespace gradlint::bind {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

inline Dtype dtype_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return Dtype::float64;
    case at::kFloat:
      return Dtype::float32;
    case at::kHalf:
      return Dtype::float16;
    default:
      return Dtype::bfloat16;
  }
}

#ifdef GRADLINT_CUDA
// The current stream of a CUDA device.
inline Context cuda_context(c10::DeviceIndex device) {
  Context context{};
  context.stream = c10::cuda::getCurrentCUDAStream(device).stream();
  C10_CUDA_CHECK(
      cudaDeviceGetAttribute(&context.processors, cudaDevAttrMultiProcessorCount, device));
  return context;
}
#endif

// Where the kernels for `tensor` run. A device guard must be held.
inline Context context_of(const Tensor& tensor) {
#ifdef GRADLINT_CUDA
  if (tensor.is_cuda()) return cuda_context(tensor.get_device());
#endif
  Context context{};
  context.parallel_for = [](int64_t blocks, RangeBody body, const void* state) {
    at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) { body(state, first, last); });
  };
  return context;
}

// Raises unless `tensor` has a floating dtype that the kernels know.
inline void check_floating(const char* op, const char* name, const Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.defined(), "gradlint::", op, ": `", name, "` must be a tensor, got None");
  const auto type = tensor.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kDouble || type == at::kFloat || type == at::kHalf || type == at::kBFloat16,
      "gradlint::", op, ": `", name, "` must be float64, float32, float16 or bfloat16, got ", type);
}

// Raises unless `tensor` has the dtype and the device of `like`.
inline void check_kind(const char* op, const char* name, const Tensor& tensor,
                       const char* like_name, const Tensor& like) {
  TORCH_CHECK_TYPE(tensor.defined(), "gradlint::", op, ": `", name, "` must be a tensor, got None");
  TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), "gradlint::", op, ": `", name,
                   "` must have the dtype of `", like_name, "`, ", like.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK(tensor.device() == like.device(), "gradlint::", op, ": `", name,
              "` must be on the device of `", like_name, "`, ", like.device(), ", got ",
              tensor.device());
}

// Raises unless `tensor` has the dtype, the device and the shape of `like`.
inline void check_alike(const char* op, const char* name, const Tensor& tensor,
                        const char* like_name, const Tensor& like) {
  check_kind(op, name, tensor, like_name, like);
  TORCH_CHECK(tensor.sym_sizes().equals(like.sym_sizes()), "gradlint::", op, ": `", name,
              "` must have the shape of `", like_name, "`, ", like.sym_sizes(), ", got ",
              tensor.sym_sizes());
}

// `outputs`, of which there may be none, then `inputs`, all of one shape or broadcast to it, to be
// walked element by element.
inline Elements elements_of(at::TensorList outputs, at::TensorList inputs) {
  const Tensor& first = outputs.empty() ? inputs[0] : outputs[0];
  auto config = at::TensorIteratorConfig();
  for (const Tensor& output : outputs) config.add_output(output);
  for (const Tensor& input : inputs) config.add_const_input(input);
  auto iterator = config.resize_outputs(false).build();

  Elements elements{};
  elements.dtype = dtype_of(first);
  elements.operands = static_cast<int>(outputs.size() + inputs.size());
  elements.axes = iterator.ndim();
  TORCH_CHECK(elements.axes <= max_axes, "gradlint: tensors of more than ", max_axes,
              " axes that can't be joined are not supported; make them contiguous");
  elements.count = iterator.numel();
  const int64_t bytes = first.element_size();
  for (int axis = 0; axis < elements.axes; ++axis) elements.shape[axis] = iterator.shape()[axis];
  for (int k = 0; k < elements.operands; ++k) {
    elements.data[k] = iterator.data_ptr(k);
    for (int axis = 0; axis < elements.axes; ++axis) {
      elements.strides[k][axis] = iterator.strides(k)[axis] / bytes;
    }
  }
  return elements;
}

// Calls the entry point for the device of `tensor`, unless there is nothing to compute: a meta
// tensor has no memory.
#ifdef GRADLINT_CUDA
#define GRADLINT_RUN(entry, tensor, ...)                              \
  do {                                                                \
    if ((tensor).is_meta()) break;                                    \
    const c10::DeviceGuard guard((tensor).device());                  \
    const auto context = ::gradlint::bind::context_of(tensor);        \
    if ((tensor).is_cuda()) {                                         \
      ::gradlint::cuda::entry(context, __VA_ARGS__);                  \
    } else {                                                          \
      ::gradlint::cpu::entry(context, __VA_ARGS__);                   \
    }                                                                 \
  } while (false)
#else
#define GRADLINT_RUN(entry, tensor, ...)                                            \
  do {                                                                              \
    if ((tensor).is_meta()) break;                                                  \
    ::gradlint::cpu::entry(::gradlint::bind::context_of(tensor), __VA_ARGS__);      \
  } while (false)
#endif

// An entry point that maps over elements, on each kind of device; null where it is not built.
struct MappedEntry {
  void (*cpu)(const Context&, const Elements&, const Scalars&);
  void (*cuda)(const Context&, const Elements&, const Scalars&);

  // Calls the one for the device of `tensor`, with elements = make(), unless there is nothing to
  // compute: a meta tensor has no memory.
  template <class Make>
  void run(const Tensor& tensor, const Make& make, const Scalars& scalars) const {
    if (tensor.is_meta()) return;
    const c10::DeviceGuard guard(tensor.device());
    (tensor.is_cuda() ? cuda : cpu)(context_of(tensor), make(), scalars);
  }
};

// The entry point `name` of kernels.h as a MappedEntry.
#ifdef GRADLINT_CUDA
#define GRADLINT_MAPPED(name) \
  (::gradlint::bind::MappedEntry{&::gradlint::cpu::name, &::gradlint::cuda::name})
#else
#define GRADLINT_MAPPED(name) (::gradlint::bind::MappedEntry{&::gradlint::cpu::name, nullptr})
#endif

// Registers `functions(m)` for each kind of device. One function serves all of them: it
// allocates, checks, and computes unless the tensors are meta tensors.
#ifdef GRADLINT_CUDA
#define GRADLINT_EVERYWHERE(functions)                           \
  TORCH_LIBRARY_IMPL(gradlint, CPU, m) { functions(m); }         \
  TORCH_LIBRARY_IMPL(gradlint, CUDA, m) { functions(m); }        \
  TORCH_LIBRARY_IMPL(gradlint, Meta, m) { functions(m); }
#else
#define GRADLINT_EVERYWHERE(functions)                           \
  TORCH_LIBRARY_IMPL(gradlint, CPU, m) { functions(m); }         \
  TORCH_LIBRARY_IMPL(gradlint, Meta, m) { functions(m); }
#endif

// The operator gradlint::`name` as the dispatcher sees it: what is on top (autograd, tracing,
// fake tensors) takes part.
template <class Signature>
auto operation(const std::string& name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(("gradlint::" + name).c_str(), "")
      .typed<Signature>();
}

}  // namespace gradlint::bind
