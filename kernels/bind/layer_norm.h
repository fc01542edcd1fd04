// layer_norm: schemas, kernels and derivatives.
//
// layer_norm is made of layer_norm_forward, which also returns what the derivative needs; its
// derivative is layer_norm_backward, and that one's is layer_norm_backward_backward. The last two
// compute only the gradients that `wanted` asks for; the others are empty tensors.
//
// The derivative of layer_norm_backward takes mean and rstd for what they are, functions of x, and
// gives their part to x.
#pragma once

#include "normalization.h"

namespace gradlint::bind::layer_norm {

inline void check_input(const char* op, const Tensor& x) {
  check_floating(op, "x", x);
  TORCH_CHECK(x.dim() >= 1, "gradlint::", op,
              ": `x` must have at least one axis, the last of which is normalized, got a tensor of "
              "0 axes");
}

// Raises unless `tensor`, where given, has one element for each along the last axis of `x`.
inline void check_affine(const char* op, const char* name, const Optional& tensor,
                         const Tensor& x) {
  if (!given(tensor)) return;
  check_kind(op, name, *tensor, "x", x);
  TORCH_CHECK(tensor->dim() == 1 && tensor->sym_size(0) == x.sym_size(-1), "gradlint::", op, ": `",
              name, "` must have the shape [", x.sym_size(-1), "] of the last axis of `x`, got ",
              tensor->sym_sizes());
}

// The shape of `x` without the last axis.
inline c10::SymIntArrayRef rows_of(const Tensor& x) { return x.sym_sizes().slice(0, x.dim() - 1); }

inline LayerNormArguments arguments_of(const Tensor& x) {
  LayerNormArguments arguments{};
  arguments.dtype = dtype_of(x);
  if (x.is_meta()) return arguments;
  arguments.length = x.size(-1);
  arguments.rows = x.size(-1) > 0 ? x.numel() / x.size(-1) : 0;
  return arguments;
}

// Memory for the sums over the rows.
inline Tensor workspace_for(const Tensor& x, const LayerNormArguments& arguments) {
  int64_t elements = 0;
  GRADLINT_RUN(layer_norm_workspace, x, arguments, elements);
  return at::empty({elements}, wide_options(x));
}

inline Three normalized(const Tensor& x, const Optional& weight, const Optional& bias, double eps) {
  constexpr auto op = "layer_norm";
  check_input(op, x);
  check_affine(op, "weight", weight, x);
  check_affine(op, "bias", bias, x);
  check_eps(op, eps);
  const Tensor y = dense_like(x, true);
  const Tensor mean = at::empty_symint(rows_of(x), wide_options(x));
  const Tensor rstd = at::empty_like(mean);
  if (x.is_meta()) return {y, mean, rstd};
  if (x.numel() == 0) return {y, mean.zero_(), rstd.zero_()};
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.eps = eps;
  arguments.x = data_of(x, keep);
  arguments.weight = data_of(weight, keep);
  arguments.bias = data_of(bias, keep);
  arguments.y = output_of(y);
  arguments.mean = output_of(mean);
  arguments.rstd = output_of(rstd);
  GRADLINT_RUN(layer_norm_forward, x, arguments);
  return {y, mean, rstd};
}

inline Three gradients(const Tensor& grad_output, const Tensor& x, const Tensor& mean,
                       const Tensor& rstd, const Optional& weight, std::array<bool, 3> wanted) {
  constexpr auto op = "layer_norm_backward";
  check_input(op, x);
  check_alike(op, "grad_output", grad_output, "x", x);
  check_saved(op, "mean", mean, x, rows_of(x));
  check_saved(op, "rstd", rstd, x, rows_of(x));
  check_affine(op, "weight", weight, x);
  const auto length = x.sym_size(-1);
  const Tensor grad_x = dense_like(x, wanted[0]);
  const Tensor grad_weight = at::empty_symint({wanted[1] ? length : 0}, x.options());
  const Tensor grad_bias = at::empty_symint({wanted[2] ? length : 0}, x.options());
  if (x.is_meta()) return {grad_x, grad_weight, grad_bias};
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.x = data_of(x, keep);
  arguments.grad_output = data_of(grad_output, keep);
  arguments.weight = data_of(weight, keep);
  arguments.mean = const_cast<void*>(data_of(mean, keep));
  arguments.rstd = const_cast<void*>(data_of(rstd, keep));
  arguments.grad_x = output_of(grad_x);
  arguments.grad_weight = output_of(grad_weight);
  arguments.grad_bias = output_of(grad_bias);
  Tensor workspace;
  if (wanted[1] || wanted[2]) {
    workspace = workspace_for(x, arguments);
    arguments.workspace = output_of(workspace);
  }
  GRADLINT_RUN(layer_norm_backward, x, arguments);
  return {grad_x, grad_weight, grad_bias};
}

inline Three second_gradients(const Optional& grad_grad_x, const Optional& grad_grad_weight,
                        const Optional& grad_grad_bias, const Tensor& grad_output, const Tensor& x,
                        const Tensor& mean, const Tensor& rstd, const Optional& weight,
                        std::array<bool, 3> wanted) {
  constexpr auto op = "layer_norm_backward_backward";
  check_input(op, x);
  check_alike(op, "grad_output", grad_output, "x", x);
  if (given(grad_grad_x)) check_alike(op, "grad_grad_x", *grad_grad_x, "x", x);
  check_affine(op, "grad_grad_weight", grad_grad_weight, x);
  check_affine(op, "grad_grad_bias", grad_grad_bias, x);
  check_saved(op, "mean", mean, x, rows_of(x));
  check_saved(op, "rstd", rstd, x, rows_of(x));
  check_affine(op, "weight", weight, x);
  const Tensor grad_grad_output = dense_like(x, wanted[0]);
  const Tensor grad_x = dense_like(x, wanted[1]);
  const Tensor grad_weight = at::empty_symint({wanted[2] ? x.sym_size(-1) : 0}, x.options());
  if (x.is_meta()) return {grad_grad_output, grad_x, grad_weight};
  // The weight's gradient is one of grad_grad_x alone.
  if (wanted[2] && !given(grad_grad_x)) grad_weight.zero_();
  std::vector<Tensor> keep;
  auto arguments = arguments_of(x);
  arguments.x = data_of(x, keep);
  arguments.grad_output = data_of(grad_output, keep);
  arguments.weight = data_of(weight, keep);
  arguments.mean = const_cast<void*>(data_of(mean, keep));
  arguments.rstd = const_cast<void*>(data_of(rstd, keep));
  arguments.grad_grad_x = data_of(grad_grad_x, keep);
  arguments.grad_grad_weight = data_of(grad_grad_weight, keep);
  arguments.grad_grad_bias = data_of(grad_grad_bias, keep);
  arguments.grad_grad_output = output_of(grad_grad_output);
  arguments.grad_x = output_of(grad_x);
  arguments.grad_weight = given(grad_grad_x) ? output_of(grad_weight) : nullptr;
  const Tensor workspace = workspace_for(x, arguments);
  arguments.workspace = output_of(workspace);
  GRADLINT_RUN(layer_norm_backward_backward, x, arguments);
  return {grad_grad_output, grad_x, grad_weight};
}

// The derivative of gradlint::layer_norm_backward.
struct BackwardFunction : torch::autograd::Function<BackwardFunction> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& x,
                               const Tensor& mean, const Tensor& rstd, const Optional& weight,
                               std::array<bool, 3> wanted) {
    static const auto op = operation<decltype(gradients)>("layer_norm_backward");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({grad_output, x, mean, rstd, weight.value_or(Tensor())});
    ctx->saved_data["wanted"] = c10::List<bool>({wanted[0], wanted[1], wanted[2]});
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [grad_x, grad_weight, grad_bias] =
        op.call(grad_output, x, mean, rstd, weight, wanted);
    return {grad_x, grad_weight, grad_bias};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<decltype(second_gradients)>("layer_norm_backward_backward");
    variable_list result(6);
    if (!grads[0].defined() && !grads[1].defined() && !grads[2].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    // Positions among the tensors given: grad_output, x, mean, rstd, weight.
    const std::array<bool, 3> wanted = {ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                                        saved[4].defined() && ctx->needs_input_grad(4)};
    const auto computed = ctx->saved_data["wanted"].toBoolList();
    const auto gradient_of = [&](int k) {
      return computed[k] ? optional_of(grads[k]) : Optional();
    };
    const auto [grad_grad_output, grad_x, grad_weight] =
        op.call(gradient_of(0), gradient_of(1), gradient_of(2), saved[0], saved[1], saved[2],
                saved[3], optional_of(saved[4]), wanted);
    if (wanted[0]) result[0] = grad_grad_output;
    if (wanted[1]) result[1] = grad_x;
    if (wanted[2]) result[4] = grad_weight;
    return result;
  }
};

// The derivative of gradlint::layer_norm. mean and rstd are saved, not returned: outputs that are
// marked as not differentiable would keep compiled autograd from the function.
struct ForwardFunction : torch::autograd::Function<ForwardFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Optional& weight,
                        const Optional& bias, double eps) {
    static const auto op = operation<decltype(normalized)>("layer_norm_forward");
    ctx->set_materialize_grads(false);
    ctx->saved_data["has_bias"] = given(bias);
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, mean, rstd] = op.call(x, weight, bias, eps);
    ctx->save_for_backward({x, weight.value_or(Tensor()), mean, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<decltype(gradients)>("layer_norm_backward");
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    const bool has_weight = saved[1].defined(), has_bias = ctx->saved_data["has_bias"].toBool();
    // Positions among the tensors given: x, weight, bias.
    const std::array<bool, 3> wanted = {
        ctx->needs_input_grad(0), has_weight && ctx->needs_input_grad(1),
        has_bias && ctx->needs_input_grad(has_weight ? 2 : 1)};
    const auto [grad_x, grad_weight, grad_bias] =
        op.call(grads[0], saved[0], saved[2], saved[3], optional_of(saved[1]), wanted);
    if (wanted[0]) result[0] = grad_x;
    if (wanted[1]) result[1] = grad_weight;
    if (wanted[2]) result[2] = grad_bias;
    return result;
  }
};

inline Tensor differentiable(const Tensor& x, const Optional& weight, const Optional& bias,
                             double eps) {
  return ForwardFunction::apply(x, weight, bias, eps);
}

inline Three differentiable_gradients(const Tensor& grad_output, const Tensor& x,
                                      const Tensor& mean, const Tensor& rstd,
                                      const Optional& weight, std::array<bool, 3> wanted) {
  const auto gradients = BackwardFunction::apply(grad_output, x, mean, rstd, weight, wanted);
  return {gradients[0], gradients[1], gradients[2]};
}

inline Tensor without_derivative(const Tensor& x, const Optional& weight, const Optional& bias,
                                 double eps) {
  static const auto op = operation<decltype(normalized)>("layer_norm_forward");
  return std::get<0>(op.call(x, weight, bias, eps));
}

inline void compute(torch::Library& m) {
  m.impl("layer_norm_forward", &normalized);
  m.impl("layer_norm_backward", &gradients);
  m.impl("layer_norm_backward_backward", &second_gradients);
}

inline void define(torch::Library& m) {
  m.def("layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor");
  m.def(
      "layer_norm_forward(Tensor x, Tensor? weight, Tensor? bias, float eps) -> "
      "(Tensor y, Tensor mean, Tensor rstd)");
  m.def(
      "layer_norm_backward(Tensor grad_output, Tensor x, Tensor mean, Tensor rstd, "
      "Tensor? weight, bool[3] wanted) -> (Tensor grad_x, Tensor grad_weight, Tensor grad_bias)");
  m.def(
      "layer_norm_backward_backward(Tensor? grad_grad_x, Tensor? grad_grad_weight, "
      "Tensor? grad_grad_bias, Tensor grad_output, Tensor x, Tensor mean, Tensor rstd, "
      "Tensor? weight, bool[3] wanted) -> "
      "(Tensor grad_grad_output, Tensor grad_x, Tensor grad_weight)");
}

inline void differentiate(torch::Library& m) {
  using torch::autograd::autogradNotImplementedFallback;
  m.impl("layer_norm", &differentiable);
  m.impl("layer_norm_forward", autogradNotImplementedFallback());
  m.impl("layer_norm_backward", &differentiable_gradients);
  m.impl("layer_norm_backward_backward", autogradNotImplementedFallback());
}

}  // namespace gradlint::bind::layer_norm
