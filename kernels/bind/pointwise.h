// The operators y = f(x; p…) of one tensor and of numbers p: schemas, kernels and derivatives.
//
// Each is three operators, so that what traces sees every step: gradlint::name,
// gradlint::name_backward, and gradlint::name_backward_backward, which has no derivative.
#pragma once

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <string>
#include <tuple>

#include "common.h"

namespace gradlint::bind {

// Op has: name, parameters (", float p" for each number, in order), and the launchers forward,
// backward and backward_backward, which choose between the CPU and CUDA.
// P is `double` for each number.
template <class Op, class... P>
struct Pointwise {
  using Forward = Tensor(const Tensor&, P...);
  using Backward = Tensor(const Tensor&, const Tensor&, P...);
  using BackwardBackward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                      P...);

  static Tensor forward(const Tensor& x, P... p) {
    check_floating(Op::name, "x", x);
    Tensor y = at::empty_like(x);
    Op::forward(x, [&] { return elements_of({y}, {x}); }, Scalars{{p...}});
    return y;
  }

  static Tensor backward(const Tensor& grad_output, const Tensor& x, P... p) {
    check_floating(Op::name, "x", x);
    check_alike(Op::name, "grad_output", grad_output, "x", x);
    Tensor grad_x = at::empty_like(x);
    Op::backward(x, [&] { return elements_of({grad_x}, {grad_output, x}); }, Scalars{{p...}});
    return grad_x;
  }

  static std::tuple<Tensor, Tensor> backward_backward(const Tensor& grad,
                                                      const Tensor& grad_output, const Tensor& x,
                                                      P... p) {
    check_floating(Op::name, "x", x);
    check_alike(Op::name, "grad_output", grad_output, "x", x);
    check_alike(Op::name, "grad", grad, "x", x);
    Tensor grad_grad_output = at::empty_like(x), grad_x = at::empty_like(x);
    Op::backward_backward(
        x, [&] { return elements_of({grad_grad_output, grad_x}, {grad, grad_output, x}); },
        Scalars{{p...}});
    return {grad_grad_output, grad_x};
  }

  // The derivative of gradlint::name_backward.
  struct BackwardFunction : torch::autograd::Function<BackwardFunction> {
    static constexpr bool is_traceable = true;

    static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& x, P... p) {
      static const auto op = operation<Backward>(std::string(Op::name) + "_backward");
      ctx->set_materialize_grads(false);
      ctx->save_for_backward({grad_output, x});
      ctx->saved_data["p"] = std::vector<double>{p...};
      const at::AutoDispatchBelowADInplaceOrView below;
      return op.call(grad_output, x, p...);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
      static const auto op =
          operation<BackwardBackward>(std::string(Op::name) + "_backward_backward");
      variable_list result(2 + sizeof...(P));
      if (!grads[0].defined()) return result;
      const auto saved = ctx->get_saved_variables();
      const auto numbers = ctx->saved_data["p"].toDoubleVector();
      std::tie(result[0], result[1]) = with_numbers(numbers, [&](P... p) {
        return op.call(grads[0], saved[0], saved[1], p...);
      });
      return result;
    }
  };

  // The derivative of gradlint::name.
  struct ForwardFunction : torch::autograd::Function<ForwardFunction> {
    static constexpr bool is_traceable = true;

    static Tensor forward(AutogradContext* ctx, const Tensor& x, P... p) {
      static const auto op = operation<Forward>(Op::name);
      ctx->set_materialize_grads(false);
      ctx->save_for_backward({x});
      ctx->saved_data["p"] = std::vector<double>{p...};
      const at::AutoDispatchBelowADInplaceOrView below;
      return op.call(x, p...);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
      static const auto op = operation<Backward>(std::string(Op::name) + "_backward");
      variable_list result(1 + sizeof...(P));
      if (!grads[0].defined()) return result;
      const auto saved = ctx->get_saved_variables();
      const auto numbers = ctx->saved_data["p"].toDoubleVector();
      result[0] = with_numbers(numbers, [&](P... p) { return op.call(grads[0], saved[0], p...); });
      return result;
    }
  };

  static Tensor differentiable_forward(const Tensor& x, P... p) {
    return ForwardFunction::apply(x, p...);
  }

  static Tensor differentiable_backward(const Tensor& grad_output, const Tensor& x, P... p) {
    return BackwardFunction::apply(grad_output, x, p...);
  }

  static void define(torch::Library& m) {
    const std::string name = Op::name, numbers = Op::parameters;
    m.def((name + "(Tensor x" + numbers + ") -> Tensor").c_str());
    m.def((name + "_backward(Tensor grad_output, Tensor x" + numbers + ") -> Tensor").c_str());
    m.def((name + "_backward_backward(Tensor grad, Tensor grad_output, Tensor x" + numbers +
           ") -> (Tensor, Tensor)")
              .c_str());
  }

  static void compute(torch::Library& m) {
    const std::string name = Op::name;
    m.impl(name.c_str(), &forward);
    m.impl((name + "_backward").c_str(), &backward);
    m.impl((name + "_backward_backward").c_str(), &backward_backward);
  }

  static void differentiate(torch::Library& m) {
    const std::string name = Op::name;
    m.impl(name.c_str(), &differentiable_forward);
    m.impl((name + "_backward").c_str(), &differentiable_backward);
    m.impl((name + "_backward_backward").c_str(), torch::autograd::autogradNotImplementedFallback());
  }

 private:
  template <class Body>
  static auto with_numbers(const std::vector<double>& numbers, const Body& body) {
    if constexpr (sizeof...(P) == 0) {
      return body();
    } else if constexpr (sizeof...(P) == 1) {
      return body(numbers[0]);
    } else {
      static_assert(sizeof...(P) == 2);
      return body(numbers[0], numbers[1]);
    }
  }
};

}  // namespace gradlint::bind

// The description of the operator `op`, with entry points of that name in kernels.h.
#define GRADLINT_POINTWISE_OP(Op, op, numbers)                                                  \
  struct Op {                                                                                   \
    static constexpr const char* name = #op;                                                    \
    static constexpr const char* parameters = numbers;                                          \
    template <class Make>                                                                       \
    static void forward(const Tensor& like, const Make& make, const Scalars& scalars) {         \
      GRADLINT_RUN(op, like, make(), scalars);                                                  \
    }                                                                                           \
    template <class Make>                                                                       \
    static void backward(const Tensor& like, const Make& make, const Scalars& scalars) {        \
      GRADLINT_RUN(op##_backward, like, make(), scalars);                                       \
    }                                                                                           \
    template <class Make>                                                                       \
    static void backward_backward(const Tensor& like, const Make& make, const Scalars& scalars) { \
      GRADLINT_RUN(op##_backward_backward, like, make(), scalars);                              \
    }                                                                                           \
  }
