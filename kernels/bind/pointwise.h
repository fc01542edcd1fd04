// The operators y = f(x; p…) of one tensor and of numbers p: schemas, kernels and derivatives.
//
// Each step is an operator of its own, so that what traces sees it: gradlint::name,
// gradlint::name_backward, and for a smooth f gradlint::name_backward_backward, which has no
// derivative.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "common.h"

namespace gradlint::bind {

// What smooth and piecewise operators share: y = f(x), and gx from (g, x).
//
// Op has: name, parameters (", float p" for each number, in order), check(p…), which raises for
// numbers that make no sense, and the entry points forward, backward (and backward_backward). P is
// `double` for each number.
template <class Op, class... P>
struct OneTensor {
  using Forward = Tensor(const Tensor&, P...);
  using Backward = Tensor(const Tensor&, const Tensor&, P...);

  static Tensor forward(const Tensor& x, P... p) {
    check_floating(Op::name, "x", x);
    Op::check(p...);
    Tensor y = at::empty_like(x);
    Op::forward.run(x, [&] { return elements_of({y}, {x}); }, Scalars{{p...}});
    return y;
  }

  static Tensor backward(const Tensor& grad_output, const Tensor& x, P... p) {
    check_floating(Op::name, "x", x);
    check_alike(Op::name, "grad_output", grad_output, "x", x);
    Op::check(p...);
    Tensor grad_x = at::empty_like(x);
    Op::backward.run(x, [&] { return elements_of({grad_x}, {grad_output, x}); }, Scalars{{p...}});
    return grad_x;
  }

  static Tensor call_backward(const Tensor& grad_output, const Tensor& x, P... p) {
    static const auto op = operation<Backward>(std::string(Op::name) + "_backward");
    return op.call(grad_output, x, p...);
  }

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
      variable_list result(1 + sizeof...(P));
      if (!grads[0].defined()) return result;
      const Tensor x = ctx->get_saved_variables()[0];
      result[0] = with_numbers(ctx, [&](P... p) { return call_backward(grads[0], x, p...); });
      return result;
    }
  };

  static Tensor differentiable_forward(const Tensor& x, P... p) {
    return ForwardFunction::apply(x, p...);
  }

  static void define(torch::Library& m) {
    const std::string name = Op::name, numbers = Op::parameters;
    m.def((name + "(Tensor x" + numbers + ") -> Tensor").c_str());
    m.def((name + "_backward(Tensor grad_output, Tensor x" + numbers + ") -> Tensor").c_str());
  }

  static void compute(torch::Library& m) {
    const std::string name = Op::name;
    m.impl(name.c_str(), &forward);
    m.impl((name + "_backward").c_str(), &backward);
  }

  // body(p…) with the numbers that forward saved.
  template <class Body>
  static auto with_numbers(AutogradContext* ctx, const Body& body) {
    return with_numbers(ctx->saved_data["p"].toDoubleVector(), body,
                        std::make_index_sequence<sizeof...(P)>());
  }

 private:
  template <class Body, size_t... I>
  static auto with_numbers(const std::vector<double>& numbers, const Body& body,
                           std::index_sequence<I...>) {
    return body(numbers[I]...);
  }
};

// f with two derivatives.
template <class Op, class... P>
struct Smooth : OneTensor<Op, P...> {
  using Shared = OneTensor<Op, P...>;
  using BackwardBackward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                      P...);

  static std::tuple<Tensor, Tensor> backward_backward(const Tensor& grad,
                                                      const Tensor& grad_output, const Tensor& x,
                                                      P... p) {
    check_floating(Op::name, "x", x);
    check_alike(Op::name, "grad_output", grad_output, "x", x);
    check_alike(Op::name, "grad", grad, "x", x);
    Op::check(p...);
    Tensor grad_grad_output = at::empty_like(x), grad_x = at::empty_like(x);
    Op::backward_backward.run(
        x, [&] { return elements_of({grad_grad_output, grad_x}, {grad, grad_output, x}); },
        Scalars{{p...}});
    return {grad_grad_output, grad_x};
  }

  // The derivative of gradlint::name_backward.
  struct BackwardFunction : torch::autograd::Function<BackwardFunction> {
    static constexpr bool is_traceable = true;

    static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& x,
                          P... p) {
      ctx->set_materialize_grads(false);
      ctx->save_for_backward({grad_output, x});
      ctx->saved_data["p"] = std::vector<double>{p...};
      const at::AutoDispatchBelowADInplaceOrView below;
      return Shared::call_backward(grad_output, x, p...);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
      static const auto op =
          operation<BackwardBackward>(std::string(Op::name) + "_backward_backward");
      variable_list result(2 + sizeof...(P));
      if (!grads[0].defined()) return result;
      const auto saved = ctx->get_saved_variables();
      if (ctx->needs_input_grad(1)) {
        std::tie(result[0], result[1]) = Shared::with_numbers(
            ctx, [&](P... p) { return op.call(grads[0], saved[0], saved[1], p...); });
      } else {  // gx is linear in grad_output
        result[0] = Shared::with_numbers(
            ctx, [&](P... p) { return Shared::call_backward(grads[0], saved[1], p...); });
      }
      return result;
    }
  };

  static Tensor differentiable_backward(const Tensor& grad_output, const Tensor& x, P... p) {
    return BackwardFunction::apply(grad_output, x, p...);
  }

  static void define(torch::Library& m) {
    Shared::define(m);
    const std::string name = Op::name, numbers = Op::parameters;
    m.def((name + "_backward_backward(Tensor grad, Tensor grad_output, Tensor x" + numbers +
           ") -> (Tensor, Tensor)")
              .c_str());
  }

  static void compute(torch::Library& m) {
    Shared::compute(m);
    m.impl((std::string(Op::name) + "_backward_backward").c_str(), &backward_backward);
  }

  static void differentiate(torch::Library& m) {
    const std::string name = Op::name;
    m.impl(name.c_str(), &Shared::differentiable_forward);
    m.impl((name + "_backward").c_str(), &differentiable_backward);
    m.impl((name + "_backward_backward").c_str(),
           torch::autograd::autogradNotImplementedFallback());
  }
};

// f whose gradient is grad_output where it passes and 0 elsewhere: every derivative is made of
// gradlint::name_backward again.
template <class Op, class... P>
struct Piecewise : OneTensor<Op, P...> {
  using Shared = OneTensor<Op, P...>;

  // The derivative of gradlint::name_backward.
  struct BackwardFunction : torch::autograd::Function<BackwardFunction> {
    static constexpr bool is_traceable = true;

    static Tensor forward(AutogradContext* ctx, const Tensor& grad_output, const Tensor& x,
                          P... p) {
      ctx->set_materialize_grads(false);
      ctx->save_for_backward({x});
      ctx->saved_data["p"] = std::vector<double>{p...};
      const at::AutoDispatchBelowADInplaceOrView below;
      return Shared::call_backward(grad_output, x, p...);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
      variable_list result(2 + sizeof...(P));
      if (!grads[0].defined()) return result;
      const Tensor x = ctx->get_saved_variables()[0];
      if (ctx->needs_input_grad(0)) {
        result[0] = Shared::with_numbers(
            ctx, [&](P... p) { return Shared::call_backward(grads[0], x, p...); });
      }
      if (ctx->needs_input_grad(1)) result[1] = at::zeros_like(x);
      return result;
    }
  };

  static Tensor differentiable_backward(const Tensor& grad_output, const Tensor& x, P... p) {
    return BackwardFunction::apply(grad_output, x, p...);
  }

  static void differentiate(torch::Library& m) {
    const std::string name = Op::name;
    m.impl(name.c_str(), &Shared::differentiable_forward);
    m.impl((name + "_backward").c_str(), &differentiable_backward);
  }
};

// Every one of Operators.
template <class... Operators>
struct Each {
  static void define(torch::Library& m) { (Operators::define(m), ...); }
  static void compute(torch::Library& m) { (Operators::compute(m), ...); }
  static void differentiate(torch::Library& m) { (Operators::differentiate(m), ...); }
};

}  // namespace gradlint::bind
