// A right operator in C++: y = log(cosh(x)), without overflow.
//
//   forward           y = |x| + log(1 + exp(−2|x|)) − log 2
//   backward          gx = g · tanh(x)
//   double backward   by autograd: backward is made of operators that have derivatives
//
// `gradlint check examples/extension/log_cosh.yaml` builds this file and checks the operator that
// it registers.
//
// ATen/ATen.h would serve as well; to compile the headers of all functions takes longer.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class LogCosh : public torch::autograd::Function<LogCosh> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    const Tensor size = x.abs();
    return size + at::log1p(at::exp(-2 * size)) - std::log(2.0);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {grad_outputs[0] * at::tanh(x)};
  }
};

Tensor log_cosh(const Tensor& x) { return LogCosh::apply(x); }

}  // namespace

TORCH_LIBRARY(extension_example, m) { m.def("log_cosh(Tensor x) -> Tensor", &log_cosh); }
