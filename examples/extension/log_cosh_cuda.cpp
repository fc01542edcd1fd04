// The binding of log_cosh_cuda.cu: schema, checks, device guard, stream, and the backward.
//
// What CUDA kernels must not forget, and gradlint checks: the current stream (GL803), the device of
// the tensors (GL804), layouts (GL701 to GL704), empty tensors, for which no kernel may be launched
// (GL705). Backward is an operator of its own, so that a second derivative, which it has not, is
// refused and not silently lost.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

int log_cosh_forward_float(int64_t, const float*, float*, void*);
int log_cosh_forward_double(int64_t, const double*, double*, void*);
int log_cosh_backward_float(int64_t, const float*, const float*, float*, void*);
int log_cosh_backward_double(int64_t, const double*, const double*, double*, void*);

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check(const Tensor& x) {
  TORCH_CHECK(x.is_cuda(), "log_cosh: `x` must be on a CUDA device, got ", x.device());
  TORCH_CHECK_TYPE(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
                   "log_cosh: `x` must be float32 or float64, got ", x.scalar_type());
}

void check_launch(int status) {
  TORCH_CHECK(status == 0, "log_cosh: the kernel was not launched, CUDA error ", status);
}

Tensor forward(const Tensor& input) {
  check(input);
  const c10::DeviceGuard guard(input.device());
  const Tensor x = input.contiguous();
  Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  void* stream = c10::cuda::getCurrentCUDAStream().stream();
  check_launch(x.scalar_type() == at::kFloat
                   ? log_cosh_forward_float(x.numel(), x.const_data_ptr<float>(),
                                            y.mutable_data_ptr<float>(), stream)
                   : log_cosh_forward_double(x.numel(), x.const_data_ptr<double>(),
                                             y.mutable_data_ptr<double>(), stream));
  return y;
}

Tensor backward(const Tensor& grad_output, const Tensor& input) {
  check(input);
  const c10::DeviceGuard guard(input.device());
  const Tensor x = input.contiguous(), g = grad_output.contiguous();
  Tensor grad_x = at::empty_like(x);
  if (x.numel() == 0) return grad_x;
  void* stream = c10::cuda::getCurrentCUDAStream().stream();
  check_launch(x.scalar_type() == at::kFloat
                   ? log_cosh_backward_float(x.numel(), x.const_data_ptr<float>(),
                                             g.const_data_ptr<float>(),
                                             grad_x.mutable_data_ptr<float>(), stream)
                   : log_cosh_backward_double(x.numel(), x.const_data_ptr<double>(),
                                              g.const_data_ptr<double>(),
                                              grad_x.mutable_data_ptr<double>(), stream));
  return grad_x;
}

class LogCosh : public torch::autograd::Function<LogCosh> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    const at::AutoDispatchBelowADInplaceOrView below;
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("extension_example_cuda::log_cosh", "")
                         .typed<Tensor(const Tensor&)>();
    return op.call(x);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("extension_example_cuda::log_cosh_backward", "")
                         .typed<Tensor(const Tensor&, const Tensor&)>();
    return {op.call(grad_outputs[0], ctx->get_saved_variables()[0])};
  }
};

Tensor differentiable(const Tensor& x) { return LogCosh::apply(x); }

Tensor forward_meta(const Tensor& x) { return at::empty_like(x); }

Tensor backward_meta(const Tensor& grad_output, const Tensor& x) { return at::empty_like(x); }

}  // namespace

TORCH_LIBRARY(extension_example_cuda, m) {
  m.def("log_cosh(Tensor x) -> Tensor");
  m.def("log_cosh_backward(Tensor grad_output, Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(extension_example_cuda, CUDA, m) {
  m.impl("log_cosh", &forward);
  m.impl("log_cosh_backward", &backward);
}

TORCH_LIBRARY_IMPL(extension_example_cuda, Meta, m) {
  m.impl("log_cosh", &forward_meta);
  m.impl("log_cosh_backward", &backward_meta);
}

TORCH_LIBRARY_IMPL(extension_example_cuda, Autograd, m) {
  m.impl("log_cosh", &differentiable);
  m.impl("log_cosh_backward", torch::autograd::autogradNotImplementedFallback());
}
