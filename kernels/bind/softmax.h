// gumbel_softmax and soft_rank: schemas, kernels and derivatives.
//
// The noise of gumbel_softmax is an input like the logits and has their gradient. Whoever draws it
// outside asks for no gradient of it, and pays for none.
#pragma once

#include <cmath>
#include <tuple>

#include "common.h"

namespace gradlint::bind::softmax {

inline void check_temperature(const char* op, double temperature) {
  TORCH_CHECK_VALUE(temperature > 0 && std::isfinite(temperature), "gradlint::", op,
                    ": `temperature` must be a positive finite number, got ", temperature);
}

// The operands, dense: rows along the last axis; a tensor without axes is one row of one element.
class Operands {
 public:
  Operands(at::TensorList inputs, at::TensorList outputs, double temperature, bool hard = false) {
    const Tensor& like = outputs[0];
    if (like.is_meta()) return;
    arguments_.dtype = dtype_of(like);
    arguments_.length = like.dim() == 0 ? 1 : like.size(-1);
    arguments_.rows = arguments_.length == 0 ? 0 : like.numel() / arguments_.length;
    arguments_.temperature = temperature;
    arguments_.hard = hard;
    for (size_t k = 0; k < inputs.size(); ++k) {
      dense_.push_back(inputs[k].contiguous());
      arguments_.in[k] = dense_[k].const_data_ptr();
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      arguments_.out[k] = outputs[k].mutable_data_ptr();
    }
  }

  const TemperatureArguments& arguments() const { return arguments_; }

 private:
  TemperatureArguments arguments_{};
  std::vector<Tensor> dense_;
};

inline Tensor dense_like(const Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); }

inline Tensor gumbel_softmax(const Tensor& logits, const Tensor& noise, double temperature,
                             bool hard) {
  constexpr auto op = "gumbel_softmax";
  check_floating(op, "logits", logits);
  check_alike(op, "noise", noise, "logits", logits);
  check_temperature(op, temperature);
  const Tensor y = dense_like(logits);
  const Operands operands({logits, noise}, {y}, temperature, hard);
  GRADLINT_RUN(gumbel_softmax, logits, operands.arguments());
  return y;
}

inline Tensor gumbel_softmax_backward(const Tensor& grad_output, const Tensor& output,
                                      double temperature) {
  constexpr auto op = "gumbel_softmax_backward";
  check_floating(op, "output", output);
  check_alike(op, "grad_output", grad_output, "output", output);
  check_temperature(op, temperature);
  const Tensor grad = dense_like(output);
  const Operands operands({grad_output, output}, {grad}, temperature);
  GRADLINT_RUN(gumbel_softmax_backward, output, operands.arguments());
  return grad;
}

inline std::tuple<Tensor, Tensor> gumbel_softmax_backward_backward(const Tensor& grad,
                                                                   const Tensor& grad_output,
                                                                   const Tensor& output,
                                                                   double temperature) {
  constexpr auto op = "gumbel_softmax_backward_backward";
  check_floating(op, "output", output);
  check_alike(op, "grad_output", grad_output, "output", output);
  check_alike(op, "grad", grad, "output", output);
  check_temperature(op, temperature);
  const Tensor grad_grad_output = dense_like(output), grad_y = dense_like(output);
  const Operands operands({grad, grad_output, output}, {grad_grad_output, grad_y}, temperature);
  GRADLINT_RUN(gumbel_softmax_backward_backward, output, operands.arguments());
  return {grad_grad_output, grad_y};
}

inline Tensor soft_rank(const Tensor& x, double temperature) {
  constexpr auto op = "soft_rank";
  check_floating(op, "x", x);
  check_temperature(op, temperature);
  const Tensor y = dense_like(x);
  const Operands operands({x}, {y}, temperature);
  GRADLINT_RUN(soft_rank, x, operands.arguments());
  return y;
}

inline Tensor soft_rank_backward(const Tensor& grad_output, const Tensor& x, double temperature) {
  constexpr auto op = "soft_rank_backward";
  check_floating(op, "x", x);
  check_alike(op, "grad_output", grad_output, "x", x);
  check_temperature(op, temperature);
  const Tensor grad_x = dense_like(x);
  const Operands operands({grad_output, x}, {grad_x}, temperature);
  GRADLINT_RUN(soft_rank_backward, x, operands.arguments());
  return grad_x;
}

// The derivative of gradlint::gumbel_softmax_backward.
struct SoftmaxBackwardFunction : torch::autograd::Function<SoftmaxBackwardFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& output,
                        double temperature) {
    static const auto op =
        operation<decltype(gumbel_softmax_backward)>("gumbel_softmax_backward");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({grad_output, output});
    ctx->saved_data["temperature"] = temperature;
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(grad_output, output, temperature);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op =
        operation<decltype(gumbel_softmax_backward_backward)>("gumbel_softmax_backward_backward");
    variable_list result(3);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    const auto [grad_grad_output, grad_y] =
        op.call(grads[0], saved[0], saved[1], ctx->saved_data["temperature"].toDouble());
    if (ctx->needs_input_grad(0)) result[0] = grad_grad_output;
    if (ctx->needs_input_grad(1)) result[1] = grad_y;
    return result;
  }
};

// The derivative of gradlint::gumbel_softmax.
struct SoftmaxFunction : torch::autograd::Function<SoftmaxFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& logits, const Tensor& noise,
                        double temperature, bool hard) {
    static const auto op = operation<decltype(gumbel_softmax)>("gumbel_softmax");
    ctx->set_materialize_grads(false);
    ctx->saved_data["temperature"] = temperature;
    ctx->saved_data["hard"] = hard;
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor y = op.call(logits, noise, temperature, hard);
    // The soft y is what the derivative needs. The hard one is no function of it, so it is
    // computed again.
    ctx->save_for_backward(hard ? variable_list{logits, noise} : variable_list{y});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto soft = operation<decltype(gumbel_softmax)>("gumbel_softmax");
    static const auto op =
        operation<decltype(gumbel_softmax_backward)>("gumbel_softmax_backward");
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    const double temperature = ctx->saved_data["temperature"].toDouble();
    const Tensor y = ctx->saved_data["hard"].toBool()
                         ? soft.call(saved[0], saved[1], temperature, false)
                         : saved[0];
    const Tensor grad = op.call(grads[0], y, temperature);
    if (ctx->needs_input_grad(0)) result[0] = grad;
    if (ctx->needs_input_grad(1)) result[1] = grad;
    return result;
  }
};

// The derivative of gradlint::soft_rank.
struct SoftRankFunction : torch::autograd::Function<SoftRankFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, double temperature) {
    static const auto op = operation<decltype(soft_rank)>("soft_rank");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x});
    ctx->saved_data["temperature"] = temperature;
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(x, temperature);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<decltype(soft_rank_backward)>("soft_rank_backward");
    variable_list result(2);
    if (!grads[0].defined()) return result;
    result[0] = op.call(grads[0], ctx->get_saved_variables()[0],
                        ctx->saved_data["temperature"].toDouble());
    return result;
  }
};

inline Tensor differentiable_softmax(const Tensor& logits, const Tensor& noise, double temperature,
                                     bool hard) {
  return SoftmaxFunction::apply(logits, noise, temperature, hard);
}

inline Tensor differentiable_softmax_backward(const Tensor& grad_output, const Tensor& output,
                                              double temperature) {
  return SoftmaxBackwardFunction::apply(grad_output, output, temperature);
}

inline Tensor differentiable_soft_rank(const Tensor& x, double temperature) {
  return SoftRankFunction::apply(x, temperature);
}

inline void compute(torch::Library& m) {
  m.impl("gumbel_softmax", &gumbel_softmax);
  m.impl("gumbel_softmax_backward", &gumbel_softmax_backward);
  m.impl("gumbel_softmax_backward_backward", &gumbel_softmax_backward_backward);
  m.impl("soft_rank", &soft_rank);
  m.impl("soft_rank_backward", &soft_rank_backward);
}

inline void define(torch::Library& m) {
  m.def(
      "gumbel_softmax(Tensor logits, Tensor noise, float temperature, bool hard=False) -> Tensor");
  m.def(
      "gumbel_softmax_backward(Tensor grad_output, Tensor output, float temperature) -> Tensor");
  m.def(
      "gumbel_softmax_backward_backward(Tensor grad, Tensor grad_output, Tensor output, "
      "float temperature) -> (Tensor, Tensor)");
  m.def("soft_rank(Tensor x, float temperature) -> Tensor");
  m.def("soft_rank_backward(Tensor grad_output, Tensor x, float temperature) -> Tensor");
}

inline void differentiate(torch::Library& m) {
  using torch::autograd::autogradNotImplementedFallback;
  m.impl("gumbel_softmax", &differentiable_softmax);
  m.impl("gumbel_softmax_backward", &differentiable_softmax_backward);
  m.impl("gumbel_softmax_backward_backward", autogradNotImplementedFallback());
  m.impl("soft_rank", &differentiable_soft_rank);
  m.impl("soft_rank_backward", autogradNotImplementedFallback());
}

}  // namespace gradlint::bind::softmax
