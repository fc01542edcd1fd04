// linear, and the operators that its derivatives are made of: matmul and column_sum. Each of
// those has derivatives that are made of the two again, so every order of derivative exists.
#pragma once

#include <string>

#include "common.h"

namespace gradlint::bind::linear {

// Raises unless `tensor` has as many axes.
inline void check_axes(const char* op, const char* name, const Tensor& tensor, int64_t least,
                       int64_t most, const char* expected) {
  TORCH_CHECK(least <= tensor.dim() && tensor.dim() <= most, "gradlint::", op, ": `", name,
              "` must have the shape ", expected, ", got ", tensor.sym_sizes());
}

inline c10::SymInt product_of(c10::SymIntArrayRef sizes) {
  c10::SymInt product = 1;
  for (const auto& size : sizes) product = product * size;
  return product;
}

// `tensor` (*, C) as one matrix.
inline Tensor as_matrix(const Tensor& tensor) {
  const auto sizes = tensor.sym_sizes();
  return tensor.reshape_symint({product_of(sizes.slice(0, sizes.size() - 1)), sizes.back()});
}

inline Matrices matrices_of(const Tensor& tensor) {
  const bool batched = tensor.dim() == 3;
  return {tensor.const_data_ptr(), batched ? tensor.stride(0) : 0, tensor.stride(-2),
          tensor.stride(-1)};
}

// Room for `count` numbers of the type in which `like` is computed.
inline Tensor workspace(const Tensor& like, int64_t count) {
  const auto wide = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::empty({count}, like.options().dtype(wide));
}

// Writes a·b + bias to `out`, which is dense; each is a matrix or a batch of them.
inline void multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  if (out.is_meta()) return;
  Product product{};
  product.dtype = dtype_of(out);
  product.batch = out.dim() == 3 ? out.size(0) : 1;
  product.rows = a.size(-2);
  product.inner = a.size(-1);
  product.columns = b.size(-1);
  product.a = matrices_of(a);
  product.b = matrices_of(b);
  const Tensor dense_bias = bias.defined() ? bias.contiguous() : bias;
  if (bias.defined()) product.bias = dense_bias.const_data_ptr();
  product.out = out.data_ptr();
  product.parts = product_parts(product.batch, product.rows, product.inner, product.columns);
  Tensor partial;
  if (product.parts > 1) {
    partial = workspace(out, product.parts * out.numel());
    product.partial = partial.data_ptr();
  }
  GRADLINT_RUN(matmul, out, product);
}

using Matmul = Tensor(const Tensor&, const Tensor&);
using Sum = Tensor(const Tensor&);
using Linear = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&);

inline Tensor call_matmul(const Tensor& a, const Tensor& b) {
  static const auto op = operation<Matmul>("matmul");
  return op.call(a, b);
}

inline Tensor call_column_sum(const Tensor& x) {
  static const auto op = operation<Sum>("column_sum");
  return op.call(x);
}

inline Tensor matmul(const Tensor& a, const Tensor& b) {
  check_floating("matmul", "a", a);
  check_kind("matmul", "b", b, "a", a);
  check_axes("matmul", "a", a, 2, 3, "(M, K) or (B, M, K)");
  check_axes("matmul", "b", b, a.dim(), a.dim(), a.dim() == 2 ? "(K, N)" : "(B, K, N)");
  TORCH_CHECK(a.sym_size(-1) == b.sym_size(-2), "gradlint::matmul: `b` must have ",
              a.sym_size(-1), " rows, as many as `a` has columns, got ", b.sym_size(-2));
  if (a.dim() == 2) {
    Tensor c = at::empty_symint({a.sym_size(0), b.sym_size(1)}, a.options());
    multiply(a, b, {}, c);
    return c;
  }
  TORCH_CHECK(a.sym_size(0) == b.sym_size(0), "gradlint::matmul: `b` must be as many matrices as "
              "`a`, ", a.sym_size(0), ", got ", b.sym_size(0));
  Tensor c = at::empty_symint({a.sym_size(0), a.sym_size(1), b.sym_size(2)}, a.options());
  multiply(a, b, {}, c);
  return c;
}

inline Tensor column_sum(const Tensor& x) {
  check_floating("column_sum", "x", x);
  check_axes("column_sum", "x", x, 2, 2, "(N, K)");
  Tensor out = at::empty_symint({x.sym_size(1)}, x.options());
  if (out.is_meta()) return out;
  ColumnSum sum{};
  sum.dtype = dtype_of(x);
  sum.rows = x.size(0);
  sum.columns = x.size(1);
  sum.x = matrices_of(x);
  sum.out = out.data_ptr();
  sum.parts = column_sum_parts(sum.rows);
  const Tensor partial = workspace(x, sum.parts * sum.columns);
  sum.partial = partial.data_ptr();
  GRADLINT_RUN(column_sum, out, sum);
  return out;
}

inline Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  check_floating("linear", "input", input);
  check_kind("linear", "weight", weight, "input", input);
  TORCH_CHECK(input.dim() > 0,
              "gradlint::linear: `input` must have the shape (*, C), got a tensor without axes");
  check_axes("linear", "weight", weight, 2, 2, "(K, C)");
  TORCH_CHECK(weight.sym_size(1) == input.sym_size(-1), "gradlint::linear: `weight` must have ",
              input.sym_size(-1), " columns, as many as the last axis of `input`, got ",
              weight.sym_sizes());
  if (bias) {
    check_kind("linear", "bias", *bias, "input", input);
    TORCH_CHECK(bias->dim() == 1 && bias->sym_size(0) == weight.sym_size(0),
                "gradlint::linear: `bias` must have the shape [", weight.sym_size(0),
                "], a number for each row of `weight`, got ", bias->sym_sizes());
  }
  c10::SymDimVector sizes(input.sym_sizes().begin(), input.sym_sizes().end());
  sizes.back() = weight.sym_size(0);
  Tensor output = at::empty_symint(sizes, input.options());
  multiply(as_matrix(input), weight.mT(), bias.value_or(Tensor()), as_matrix(output));
  return output;
}

struct MatmulFunction : torch::autograd::Function<MatmulFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({a, b});
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_matmul(a, b);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    if (ctx->needs_input_grad(0)) result[0] = call_matmul(grads[0], saved[1].mT());
    if (ctx->needs_input_grad(1)) result[1] = call_matmul(saved[0].mT(), grads[0]);
    return result;
  }
};

struct ColumnSumFunction : torch::autograd::Function<ColumnSumFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["rows"] = x.sym_size(0);
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_column_sum(x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    if (!grads[0].defined()) return {Tensor()};
    return {grads[0].expand_symint({ctx->saved_data["rows"].toSymInt(), grads[0].sym_size(0)})};
  }
};

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    static const auto op = operation<Linear>("linear");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({input, weight});
    ctx->saved_data["bias"] = bias.has_value();
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(input, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(3);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    const Tensor grad = as_matrix(grads[0]);
    if (ctx->needs_input_grad(0)) {
      result[0] = call_matmul(grad, saved[1]).reshape_symint(saved[0].sym_sizes());
    }
    if (ctx->needs_input_grad(1)) result[1] = call_matmul(grad.mT(), as_matrix(saved[0]));
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) {
      result[2] = call_column_sum(grad);
    }
    return result;
  }
};

inline Tensor differentiable_matmul(const Tensor& a, const Tensor& b) {
  return MatmulFunction::apply(a, b);
}

inline Tensor differentiable_column_sum(const Tensor& x) { return ColumnSumFunction::apply(x); }

inline Tensor differentiable_linear(const Tensor& input, const Tensor& weight,
                                    const std::optional<Tensor>& bias) {
  return LinearFunction::apply(input, weight, bias);
}

inline void compute(torch::Library& m) {
  m.impl("matmul", &matmul);
  m.impl("column_sum", &column_sum);
  m.impl("linear", &linear);
}

inline void define(torch::Library& m) {
  m.def("matmul(Tensor a, Tensor b) -> Tensor");
  m.def("column_sum(Tensor x) -> Tensor");
  m.def("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor");
}

inline void differentiate(torch::Library& m) {
  m.impl("matmul", &differentiable_matmul);
  m.impl("column_sum", &differentiable_column_sum);
  m.impl("linear", &differentiable_linear);
}

}  // namespace gradlint::bind::linear
