// attention, composed of steps that are operators with derivatives of their own: the product of
// linear.h, and a masked softmax.
#pragma once

#include <cmath>
#include <tuple>

#include "common.h"

namespace gradlint::bind::attention {

using Matmul = Tensor(const Tensor&, const Tensor&);
using Softmax = Tensor(const Tensor&, const std::optional<Tensor>&, double);
using SoftmaxBackward = Tensor(const Tensor&, const Tensor&, double);
using SoftmaxBackwardBackward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&,
                                                           const Tensor&, double);

// Raises unless `tensor` is a batch of matrices of float32 or float64.
inline void check_scores(const char* op, const char* name, const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK_TYPE(type == at::kDouble || type == at::kFloat, "gradlint::", op, ": `", name,
                   "` must be float64 or float32, got ", type);
  TORCH_CHECK(tensor.dim() == 3, "gradlint::", op, ": `", name,
              "` must have the shape (B, L, S), got ", tensor.sym_sizes());
}

inline Scores scores_of(const Tensor& tensor, double scale) {
  Scores scores{};
  scores.dtype = dtype_of(tensor);
  scores.batch = tensor.size(0);
  scores.rows = tensor.size(1);
  scores.columns = tensor.size(2);
  scores.scale = scale;
  return scores;
}

inline Tensor masked_softmax(const Tensor& scores, const std::optional<Tensor>& mask,
                             double scale) {
  check_scores("masked_softmax", "scores", scores);
  TORCH_CHECK_VALUE(scale > 0, "gradlint::masked_softmax: `scale` must be positive, got ", scale);
  if (mask) {
    TORCH_CHECK_TYPE(mask->scalar_type() == at::kBool,
                     "gradlint::masked_softmax: `mask` must be bool, got ", mask->scalar_type());
    TORCH_CHECK(mask->device() == scores.device(),
                "gradlint::masked_softmax: `mask` must be on the device of `scores`, ",
                scores.device(), ", got ", mask->device());
    TORCH_CHECK(mask->sym_sizes().equals(scores.sym_sizes()),
                "gradlint::masked_softmax: `mask` must have the shape of `scores`, ",
                scores.sym_sizes(), ", got ", mask->sym_sizes());
  }
  const Tensor x = scores.contiguous();
  Tensor p = at::empty_like(x);
  if (p.is_meta()) return p;
  Scores rows = scores_of(x, scale);
  if (mask) {
    rows.mask = mask->const_data_ptr<bool>();
    for (int axis = 0; axis < 3; ++axis) rows.mask_strides[axis] = mask->stride(axis);
  }
  GRADLINT_RUN(masked_softmax, p, rows, x.const_data_ptr(), p.data_ptr());
  return p;
}

inline Tensor masked_softmax_backward(const Tensor& grad_output, const Tensor& p, double scale) {
  check_scores("masked_softmax_backward", "p", p);
  check_alike("masked_softmax_backward", "grad_output", grad_output, "p", p);
  const Tensor g = grad_output.contiguous(), dense_p = p.contiguous();
  Tensor grad_scores = at::empty_like(dense_p);
  if (grad_scores.is_meta()) return grad_scores;
  GRADLINT_RUN(masked_softmax_backward, grad_scores, scores_of(dense_p, scale),
               g.const_data_ptr(), dense_p.const_data_ptr(), grad_scores.data_ptr());
  return grad_scores;
}

inline std::tuple<Tensor, Tensor> masked_softmax_backward_backward(const Tensor& grad,
                                                                   const Tensor& grad_output,
                                                                   const Tensor& p, double scale) {
  check_scores("masked_softmax_backward_backward", "p", p);
  check_alike("masked_softmax_backward_backward", "grad_output", grad_output, "p", p);
  check_alike("masked_softmax_backward_backward", "grad", grad, "p", p);
  const Tensor c = grad.contiguous(), g = grad_output.contiguous(), dense_p = p.contiguous();
  Tensor grad_grad_output = at::empty_like(dense_p), grad_p = at::empty_like(dense_p);
  if (grad_p.is_meta()) return {grad_grad_output, grad_p};
  GRADLINT_RUN(masked_softmax_backward_backward, grad_p, scores_of(dense_p, scale),
               c.const_data_ptr(), g.const_data_ptr(), dense_p.const_data_ptr(),
               grad_grad_output.data_ptr(), grad_p.data_ptr());
  return {grad_grad_output, grad_p};
}

struct SoftmaxBackwardFunction : torch::autograd::Function<SoftmaxBackwardFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& p,
                        double scale) {
    static const auto op = operation<SoftmaxBackward>("masked_softmax_backward");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({grad_output, p});
    ctx->saved_data["scale"] = scale;
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(grad_output, p, scale);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op =
        operation<SoftmaxBackwardBackward>("masked_softmax_backward_backward");
    variable_list result(3);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    std::tie(result[0], result[1]) =
        op.call(grads[0], saved[0], saved[1], ctx->saved_data["scale"].toDouble());
    return result;
  }
};

struct SoftmaxFunction : torch::autograd::Function<SoftmaxFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& scores,
                        const std::optional<Tensor>& mask, double scale) {
    static const auto op = operation<Softmax>("masked_softmax");
    ctx->set_materialize_grads(false);
    ctx->saved_data["scale"] = scale;
    const Tensor p = [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      return op.call(scores, mask, scale);
    }();
    ctx->save_for_backward({p});
    return p;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<SoftmaxBackward>("masked_softmax_backward");
    variable_list result(3);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    result[0] = op.call(grads[0], saved[0], ctx->saved_data["scale"].toDouble());
    return result;
  }
};

inline Tensor differentiable_softmax(const Tensor& scores, const std::optional<Tensor>& mask,
                                     double scale) {
  return SoftmaxFunction::apply(scores, mask, scale);
}

inline Tensor differentiable_softmax_backward(const Tensor& grad_output, const Tensor& p,
                                              double scale) {
  return SoftmaxBackwardFunction::apply(grad_output, p, scale);
}

inline void check_attention(const Tensor& query, const Tensor& key, const Tensor& value) {
  check_floating("attention", "query", query);
  const std::tuple<const char*, const Tensor&, const char*> arguments[] = {
      {"query", query, "(*, L, E)"}, {"key", key, "(*, S, E)"}, {"value", value, "(*, S, V)"}};
  for (const auto& [name, tensor, shape] : arguments) {
    check_kind("attention", name, tensor, "query", query);
    TORCH_CHECK(tensor.dim() >= 2, "gradlint::attention: `", name, "` must have the shape ",
                shape, ", got ", tensor.sym_sizes());
    const auto leading = tensor.sym_sizes().slice(0, tensor.dim() - 2);
    const auto expected = query.sym_sizes().slice(0, query.dim() - 2);
    TORCH_CHECK(leading.equals(expected), "gradlint::attention: `", name,
                "` must have the axes of `query` before the last two, ", expected, ", got ",
                leading);
  }
  TORCH_CHECK(key.sym_size(-1) == query.sym_size(-1), "gradlint::attention: `key` must be as wide "
              "as `query`, ", query.sym_size(-1), ", got ", key.sym_size(-1));
  TORCH_CHECK(value.sym_size(-2) == key.sym_size(-2), "gradlint::attention: `value` must have ",
              key.sym_size(-2), " rows, as many as `key`, got ", value.sym_size(-2));
}

// `mask` for scores (*, L, S) as (B, L, S), without a copy where its strides allow.
inline Tensor batched_mask(const Tensor& mask, c10::SymIntArrayRef full,
                           c10::SymIntArrayRef batched) {
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "gradlint::attention: `mask` must be bool (True where a query may look), got ",
                   mask.scalar_type());
  const auto sizes = mask.sym_sizes();
  bool fits = sizes.size() <= full.size();
  for (size_t i = 1; fits && i <= sizes.size(); ++i) {
    const auto& size = sizes[sizes.size() - i];
    fits = size == 1 || size == full[full.size() - i];
  }
  TORCH_CHECK(fits, "gradlint::attention: `mask` must have the shape (*, L, S), ", full,
              ", or one that broadcasts to it, got ", sizes);
  return mask.expand_symint(full).reshape_symint(batched);
}

// One operator for whoever calls it, its steps for what differentiates or traces it.
inline Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& mask) {
  static const auto matmul = operation<Matmul>("matmul");
  static const auto softmax = operation<Softmax>("masked_softmax");
  check_attention(query, key, value);
  const auto leading = query.sym_sizes().slice(0, query.dim() - 2);
  c10::SymInt batch = 1;
  for (const auto& size : leading) batch = batch * size;

  // From 16 bits on the scores and probabilities keep float32.
  const auto wide = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto prepared = [&](const Tensor& tensor) {
    return tensor.to(wide).reshape_symint({batch, tensor.sym_size(-2), tensor.sym_size(-1)});
  };
  const auto shaped = [&](const c10::SymInt& rows, const c10::SymInt& columns) {
    c10::SymDimVector sizes(leading.begin(), leading.end());
    sizes.push_back(rows);
    sizes.push_back(columns);
    return sizes;
  };
  const auto queries = query.sym_size(-2), keys = key.sym_size(-2);
  std::optional<Tensor> looked;
  if (mask) looked = batched_mask(*mask, shaped(queries, keys), {batch, queries, keys});

  // Without a width every score is 0, whatever the scale.
  const auto width = query.sym_size(-1).guard_int(__FILE__, __LINE__);
  const double scale = width > 0 ? 1 / std::sqrt(static_cast<double>(width)) : 1;
  const Tensor scores = matmul.call(prepared(query), prepared(key).mT());
  const Tensor output = matmul.call(softmax.call(scores, looked, scale), prepared(value));
  return output.reshape_symint(shaped(queries, value.sym_size(-1))).to(query.scalar_type());
}

inline void compute(torch::Library& m) {
  m.impl("masked_softmax", &masked_softmax);
  m.impl("masked_softmax_backward", &masked_softmax_backward);
  m.impl("masked_softmax_backward_backward", &masked_softmax_backward_backward);
}

inline void define(torch::Library& m) {
  m.def("attention(Tensor query, Tensor key, Tensor value, Tensor? mask=None) -> Tensor",
        &attention);
  m.def("masked_softmax(Tensor scores, Tensor? mask, float scale) -> Tensor");
  m.def("masked_softmax_backward(Tensor grad_output, Tensor p, float scale) -> Tensor");
  m.def(
      "masked_softmax_backward_backward(Tensor grad, Tensor grad_output, Tensor p, float scale)"
      " -> (Tensor, Tensor)");
}

inline void differentiate(torch::Library& m) {
  m.impl("masked_softmax", &differentiable_softmax);
  m.impl("masked_softmax_backward", &differentiable_softmax_backward);
  m.impl("masked_softmax_backward_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace gradlint::bind::attention
