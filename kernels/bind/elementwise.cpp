// Element by element: y = f(x), scale and scale_, add_relu, weighted_sum.
#include "pointwise.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

namespace gradlint::bind {
namespace {

// What pointwise.h asks of an operator y = f(x).
struct Square {
  static constexpr const char* name = "square";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(square);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(square_backward);
  static constexpr MappedEntry backward_backward = GRADLINT_MAPPED(square_backward_backward);

  static void check() {}
};

struct Exp {
  static constexpr const char* name = "exp";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(exp);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(exp_backward);
  static constexpr MappedEntry backward_backward = GRADLINT_MAPPED(exp_backward_backward);

  static void check() {}
};

struct ScaledSigmoid {
  static constexpr const char* name = "scaled_sigmoid";
  static constexpr const char* parameters = ", float scale";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(scaled_sigmoid);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(scaled_sigmoid_backward);
  static constexpr MappedEntry backward_backward =
      GRADLINT_MAPPED(scaled_sigmoid_backward_backward);

  static void check(double) {}
};

struct Gelu {
  static constexpr const char* name = "gelu";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(gelu);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(gelu_backward);
  static constexpr MappedEntry backward_backward = GRADLINT_MAPPED(gelu_backward_backward);

  static void check() {}
};

struct Silu {
  static constexpr const char* name = "silu";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(silu);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(silu_backward);
  static constexpr MappedEntry backward_backward = GRADLINT_MAPPED(silu_backward_backward);

  static void check() {}
};

struct Relu {
  static constexpr const char* name = "relu";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(relu);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(relu_backward);

  static void check() {}
};

struct SignSte {
  static constexpr const char* name = "sign_ste";
  static constexpr const char* parameters = "";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(sign_ste);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(sign_ste_backward);

  static void check() {}
};

struct ClippedRelu {
  static constexpr const char* name = "clipped_relu";
  static constexpr const char* parameters = ", float ceiling";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(clipped_relu);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(clipped_relu_backward);

  static void check(double ceiling) {
    TORCH_CHECK_VALUE(ceiling >= 0, "gradlint::clipped_relu: `ceiling` must be 0 or more, got ",
                      ceiling);
  }
};

struct SoftThreshold {
  static constexpr const char* name = "soft_threshold";
  static constexpr const char* parameters = ", float threshold";
  static constexpr MappedEntry forward = GRADLINT_MAPPED(soft_threshold);
  static constexpr MappedEntry backward = GRADLINT_MAPPED(soft_threshold_backward);

  static void check(double threshold) {
    TORCH_CHECK_VALUE(threshold >= 0, "gradlint::soft_threshold: `threshold` must be 0 or more, got ",
                      threshold);
  }
};

using Pointwise =
    Each<Smooth<Square>, Smooth<Exp>, Smooth<ScaledSigmoid, double>, Smooth<Gelu>, Smooth<Silu>,
         Piecewise<Relu>, Piecewise<SignSte>, Piecewise<ClippedRelu, double>,
         Piecewise<SoftThreshold, double>>;

using Unary = Tensor(const Tensor&, double);
using InPlace = Tensor&(Tensor&, double);
using Binary = Tensor(const Tensor&, const Tensor&);

Tensor scale(const Tensor& x, double factor) {
  check_floating("scale", "x", x);
  Tensor y = at::empty_like(x);
  GRADLINT_RUN(scale, x, elements_of({y}, {x}), Scalars{{factor}});
  return y;
}

Tensor& scale_(Tensor& x, double factor) {
  check_floating("scale_", "x", x);
  GRADLINT_RUN(scale, x, elements_of({x}, {x}), Scalars{{factor}});
  return x;
}

Tensor add_relu(const Tensor& x, const Tensor& y) {
  check_floating("add_relu", "x", x);
  check_alike("add_relu", "y", y, "x", x);
  Tensor z = at::empty_like(x);
  GRADLINT_RUN(add_relu, x, elements_of({z}, {x, y}));
  return z;
}

Tensor weighted_sum(const Tensor& x, const Tensor& weight) {
  check_floating("weighted_sum", "x", x);
  check_alike("weighted_sum", "weight", weight, "x", x);
  Tensor sum = at::empty({}, x.options());
  const Tensor partials = at::empty({sum_blocks}, x.options().dtype(at::kDouble));
  GRADLINT_RUN(weighted_sum, x, elements_of({}, {x, weight}), partials.mutable_data_ptr<double>(),
               sum.mutable_data_ptr());
  return sum;
}

Tensor weighted_sum_backward(const Tensor& grad_output, const Tensor& factor) {
  check_floating("weighted_sum", "factor", factor);
  check_kind("weighted_sum", "grad_output", grad_output, "factor", factor);
  TORCH_CHECK(grad_output.dim() == 0,
              "gradlint::weighted_sum: `grad_output` must have no axes, got ",
              grad_output.sym_sizes());
  Tensor product = at::empty_like(factor);
  GRADLINT_RUN(weighted_sum_backward, factor, elements_of({product}, {grad_output, factor}));
  return product;
}

void compute(torch::Library& m) {
  Pointwise::compute(m);
  m.impl("scale", &scale);
  m.impl("scale_", &scale_);
  m.impl("add_relu", &add_relu);
  m.impl("weighted_sum", &weighted_sum);
  m.impl("weighted_sum_backward", &weighted_sum_backward);
}

Tensor call_scale(const Tensor& x, double factor) {
  static const auto op = operation<Unary>("scale");
  return op.call(x, factor);
}

Tensor call_weighted_sum(const Tensor& x, const Tensor& weight) {
  static const auto op = operation<Binary>("weighted_sum");
  return op.call(x, weight);
}

Tensor call_weighted_sum_backward(const Tensor& grad_output, const Tensor& factor) {
  static const auto op = operation<Binary>("weighted_sum_backward");
  return op.call(grad_output, factor);
}

// The gradient of scale and of scale_: scale again, so every order of derivative is there.
// `inputs` is the number of forward's arguments.
variable_list scaled(AutogradContext* ctx, const variable_list& grads, size_t inputs) {
  variable_list result(inputs);
  if (grads[0].defined()) {
    result[0] = call_scale(grads[0], ctx->saved_data["factor"].toDouble());
  }
  return result;
}

struct Scale : torch::autograd::Function<Scale> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["factor"] = factor;
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_scale(x, factor);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return scaled(ctx, grads, 2);
  }
};

struct ScaleInPlace : torch::autograd::Function<ScaleInPlace> {
  static constexpr bool is_traceable = true;

  // Also says where the node's context is.
  static Tensor forward(AutogradContext* ctx, Tensor x, double factor, AutogradContext** context) {
    static const auto op = operation<InPlace>("scale_");
    *context = ctx;
    ctx->set_materialize_grads(false);
    ctx->saved_data["factor"] = factor;
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      op.call(x, factor);
    }
    ctx->mark_dirty({x});  // also counts the version up
    return x;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return scaled(ctx, grads, 3);
  }
};

struct AddRelu : torch::autograd::Function<AddRelu> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    static const auto op = operation<Binary>("add_relu");
    ctx->set_materialize_grads(false);
    const at::AutoDispatchBelowADInplaceOrView below;
    Tensor z = op.call(x, y);
    ctx->save_for_backward({z});
    return z;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<Binary>("relu_backward");
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const Tensor grad_sum = op.call(grads[0], ctx->get_saved_variables()[0]);
    if (ctx->needs_input_grad(0)) result[0] = grad_sum;
    if (ctx->needs_input_grad(1)) result[1] = grad_sum;
    return result;
  }
};

struct WeightedSum : torch::autograd::Function<WeightedSum> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight) {
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x, weight});
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_weighted_sum(x, weight);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    if (ctx->needs_input_grad(0)) result[0] = call_weighted_sum_backward(grads[0], saved[1]);
    if (ctx->needs_input_grad(1)) result[1] = call_weighted_sum_backward(grads[0], saved[0]);
    return result;
  }
};

struct WeightedSumBackward : torch::autograd::Function<WeightedSumBackward> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& factor) {
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({grad_output, factor});
    const at::AutoDispatchBelowADInplaceOrView below;
    return call_weighted_sum_backward(grad_output, factor);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const auto saved = ctx->get_saved_variables();
    if (ctx->needs_input_grad(0)) result[0] = call_weighted_sum(grads[0], saved[1]);
    if (ctx->needs_input_grad(1)) result[1] = call_weighted_sum_backward(saved[0], grads[0]);
    return result;
  }
};

Tensor& differentiable_scale_(Tensor& x, double factor) {
  // Before anything is written: a leaf that requires grad stays as it was.
  torch::autograd::check_inplace(x, x.requires_grad());
  const bool recorded = at::GradMode::is_enabled() && x.requires_grad();
  AutogradContext* context = nullptr;
  ScaleInPlace::apply(x, factor, &context);
  // The mark has done its work; compiled autograd refuses a node that still has one.
  if (recorded) context->mark_dirty({});
  return x;
}

// What traces without mutation sees scale, and x takes its result.
Tensor& functional_scale_(Tensor& x, double factor) {
  namespace functional = at::functionalization::impl;
  functional::sync(x);
  const Tensor before =
      functional::isFunctionalTensor(x) ? functional::from_functional_tensor(x) : x;
  Tensor after;
  {
    const at::AutoDispatchSkipFunctionalize below;
    after = call_scale(before, factor);
  }
  functional::replace_(x, after);
  functional::commit_update(x);
  functional::sync(x);
  return x;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(gradlint, m) {
  Pointwise::define(m);
  m.def("scale(Tensor x, float factor) -> Tensor");
  m.def("scale_(Tensor(a!) x, float factor) -> Tensor(a!)");
  m.def("add_relu(Tensor x, Tensor y) -> Tensor");
  m.def("weighted_sum(Tensor x, Tensor weight) -> Tensor");
  m.def("weighted_sum_backward(Tensor grad_output, Tensor factor) -> Tensor");
}

GRADLINT_EVERYWHERE(compute)

TORCH_LIBRARY_IMPL(gradlint, Autograd, m) {
  Pointwise::differentiate(m);
  m.impl("scale", [](const Tensor& x, double factor) { return Scale::apply(x, factor); });
  m.impl("scale_", &differentiable_scale_);
  m.impl("add_relu", [](const Tensor& x, const Tensor& y) { return AddRelu::apply(x, y); });
  m.impl("weighted_sum",
         [](const Tensor& x, const Tensor& weight) { return WeightedSum::apply(x, weight); });
  m.impl("weighted_sum_backward", [](const Tensor& grad_output, const Tensor& factor) {
    return WeightedSumBackward::apply(grad_output, factor);
  });
}

// Where autograd is off but versions are counted: in inference mode, on a tensor from outside.
TORCH_LIBRARY_IMPL(gradlint, ADInplaceOrView, m) {
  m.impl("scale_", torch::autograd::autogradNotImplementedInplaceOrViewFallback());
}

TORCH_LIBRARY_IMPL(gradlint, Functionalize, m) { m.impl("scale_", &functional_scale_); }

}  // namespace gradlint::bind
