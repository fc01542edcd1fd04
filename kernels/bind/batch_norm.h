// batch_norm: schemas, kernels and derivatives.
//
// batch_norm is made of batch_norm_forward, which also returns what the derivative needs; its
// derivative is batch_norm_backward, and that one's is batch_norm_backward_backward.
//
// The derivative of batch_norm_backward takes mean and rstd for what they are, functions of x, and
// gives their part to x.
#pragma once

#include "normalization.h"

namespace gradlint::bind::batch_norm {

inline void check_input(const char* op, const Tensor& x) {
  check_floating(op, "x", x);
  TORCH_CHECK(x.dim() >= 2, "gradlint::", op,
              ": `x` must have the shape (N, C, *), the batch and the channels first, got ",
              x.sym_sizes());
}

inline c10::SymIntArrayRef channels_of(const Tensor& x) { return x.sym_sizes().slice(1, 1); }

inline BatchNormArguments arguments_of(const Tensor& x) {
  BatchNormArguments arguments{};
  arguments.dtype = dtype_of(x);
  arguments.batch = x.size(0);
  arguments.channels = x.size(1);
  arguments.inner = x.numel() / (x.size(0) * x.size(1));
  return arguments;
}

// Memory for `terms` sums over each channel.
inline Tensor workspace_for(const Tensor& x, const BatchNormArguments& arguments, int terms) {
  int64_t elements = 0;
  GRADLINT_RUN(batch_norm_workspace, x, arguments, terms, elements);
  return at::empty({elements}, wide_options(x));
}

inline Three normalized(const Tensor& x, double eps) {
  constexpr auto op = "batch_norm";
  check_input(op, x);
  check_eps(op, eps);
  const Tensor y = dense_like(x, true);
  const Tensor mean = at::empty_symint(channels_of(x), wide_options(x));
  const Tensor rstd = at::empty_like(mean);
  if (x.is_meta()) return {y, mean, rstd};
  if (x.numel() == 0) return {y, mean.zero_(), rstd.zero_()};
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.eps = eps;
  arguments.x = data_of(x, keep);
  arguments.y = output_of(y);
  arguments.mean = output_of(mean);
  arguments.rstd = output_of(rstd);
  const Tensor workspace = workspace_for(x, arguments, 2);
  arguments.workspace = output_of(workspace);
  GRADLINT_RUN(batch_norm_forward, x, arguments);
  return {y, mean, rstd};
}

inline Tensor gradient(const Tensor& grad_output, const Tensor& x, const Tensor& mean,
                       const Tensor& rstd) {
  constexpr auto op = "batch_norm_backward";
  check_input(op, x);
  check_alike(op, "grad_output", grad_output, "x", x);
  check_saved(op, "mean", mean, x, channels_of(x));
  check_saved(op, "rstd", rstd, x, channels_of(x));
  const Tensor grad_x = dense_like(x, true);
  if (x.is_meta() || x.numel() == 0) return grad_x;
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.x = data_of(x, keep);
  arguments.grad_output = data_of(grad_output, keep);
  arguments.mean = const_cast<void*>(data_of(mean, keep));
  arguments.rstd = const_cast<void*>(data_of(rstd, keep));
  arguments.grad_x = output_of(grad_x);
  const Tensor workspace = workspace_for(x, arguments, 2);
  arguments.workspace = output_of(workspace);
  GRADLINT_RUN(batch_norm_backward, x, arguments);
  return grad_x;
}

inline std::tuple<Tensor, Tensor> second_gradients(const Tensor& grad_grad_x,
                                                   const Tensor& grad_output, const Tensor& x,
                                                   const Tensor& mean, const Tensor& rstd) {
  constexpr auto op = "batch_norm_backward_backward";
  check_input(op, x);
  check_alike(op, "grad_output", grad_output, "x", x);
  check_alike(op, "grad_grad_x", grad_grad_x, "x", x);
  check_saved(op, "mean", mean, x, channels_of(x));
  check_saved(op, "rstd", rstd, x, channels_of(x));
  const Tensor grad_grad_output = dense_like(x, true), grad_x = dense_like(x, true);
  if (x.is_meta() || x.numel() == 0) return {grad_grad_output, grad_x};
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.x = data_of(x, keep);
  arguments.grad_output = data_of(grad_output, keep);
  arguments.grad_grad_x = data_of(grad_grad_x, keep);
  arguments.mean = const_cast<void*>(data_of(mean, keep));
  arguments.rstd = const_cast<void*>(data_of(rstd, keep));
  arguments.grad_grad_output = output_of(grad_grad_output);
  arguments.grad_x = output_of(grad_x);
  const Tensor workspace = workspace_for(x, arguments, 5);
  arguments.workspace = output_of(workspace);
  GRADLINT_RUN(batch_norm_backward_backward, x, arguments);
  return {grad_grad_output, grad_x};
}

// The derivative of gradlint::batch_norm_backward.
struct BackwardFunction : torch::autograd::Function<BackwardFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& x,
                        const Tensor& mean, const Tensor& rstd) {
    static const auto op = operation<decltype(gradient)>("batch_norm_backward");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({grad_output, x, mean, rstd});
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(grad_output, x, mean, rstd);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<decltype(second_gradients)>("batch_norm_backward_backward");
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    const auto [grad_grad_output, grad_x] =
        op.call(grads[0], saved[0], saved[1], saved[2], saved[3]);
    if (ctx->needs_input_grad(0)) result[0] = grad_grad_output;
    if (ctx->needs_input_grad(1)) result[1] = grad_x;
    return result;
  }
};

// The derivative of gradlint::batch_norm.
struct ForwardFunction : torch::autograd::Function<ForwardFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, double eps) {
    static const auto op = operation<decltype(normalized)>("batch_norm_forward");
    ctx->set_materialize_grads(false);
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, mean, rstd] = op.call(x, eps);
    ctx->save_for_backward({x, mean, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<decltype(gradient)>("batch_norm_backward");
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    result[0] = op.call(grads[0], saved[0], saved[1], saved[2]);
    return result;
  }
};

inline Tensor differentiable(const Tensor& x, double eps) { return ForwardFunction::apply(x, eps); }

inline Tensor differentiable_gradient(const Tensor& grad_output, const Tensor& x,
                                      const Tensor& mean, const Tensor& rstd) {
  return BackwardFunction::apply(grad_output, x, mean, rstd);
}

inline Tensor without_derivative(const Tensor& x, double eps) {
  static const auto op = operation<decltype(normalized)>("batch_norm_forward");
  return std::get<0>(op.call(x, eps));
}

inline void compute(torch::Library& m) {
  m.impl("batch_norm_forward", &normalized);
  m.impl("batch_norm_backward", &gradient);
  m.impl("batch_norm_backward_backward", &second_gradients);
}

inline void define(torch::Library& m) {
  m.def("batch_norm(Tensor x, float eps=1e-5) -> Tensor");
  m.def("batch_norm_forward(Tensor x, float eps) -> (Tensor y, Tensor mean, Tensor rstd)");
  m.def(
      "batch_norm_backward(Tensor grad_output, Tensor x, Tensor mean, Tensor rstd) -> Tensor");
  m.def(
      "batch_norm_backward_backward(Tensor grad_grad_x, Tensor grad_output, Tensor x, "
      "Tensor mean, Tensor rstd) -> (Tensor grad_grad_output, Tensor grad_x)");
}

inline void differentiate(torch::Library& m) {
  using torch::autograd::autogradNotImplementedFallback;
  m.impl("batch_norm", &differentiable);
  m.impl("batch_norm_forward", autogradNotImplementedFallback());
  m.impl("batch_norm_backward", &differentiable_gradient);
  m.impl("batch_norm_backward_backward", autogradNotImplementedFallback());
}

}  // namespace gradlint::bind::batch_norm
