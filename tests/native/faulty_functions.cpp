// x² as C++ Functions, each with another fault in backward: what gradlint must see of them.
// The headers of all functions of ATen would take as long to compile as all else here.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum class Fault { none, value, shape, summed, undefined, count, nan, strides, dtype, raises, lost };

template <Fault fault>
struct Square : torch::autograd::Function<Square<fault>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const Tensor x = ctx->get_saved_variables()[0], g = grad_outputs[0];
    const Tensor right = 2 * x * g;
    switch (fault) {
      case Fault::value:
        return {3 * x * g};
      case Fault::shape:
        return {right.sum(0)};
      case Fault::summed:
        return {right.unsqueeze(0)};
      case Fault::undefined:
        return {Tensor()};
      case Fault::count:
        return {right, g};
      case Fault::nan:
        return {right / (x - x) * (x - x)};
      case Fault::strides:
        return {2 * x * at::from_blob(g.data_ptr(), g.sizes(), g.options())};
      case Fault::dtype:
        return {right.to(at::kHalf)};
      case Fault::raises:
        TORCH_CHECK(false, "backward is not written yet");
      case Fault::lost:
        return {right.detach()};
      default:
        return {right};
    }
  }
};

template <Fault fault>
Tensor square(const Tensor& x) {
  return Square<fault>::apply(x);
}

}  // namespace

#define DEFINE(name, fault) m.def(#name "(Tensor x) -> Tensor", &square<Fault::fault>)

TORCH_LIBRARY(gradlint_tests, m) {
  DEFINE(none, none);
  DEFINE(value, value);
  DEFINE(shape, shape);
  DEFINE(summed, summed);
  DEFINE(undefined, undefined);
  DEFINE(count, count);
  DEFINE(nan, nan);
  DEFINE(strides, strides);
  DEFINE(dtype, dtype);
  DEFINE(raises, raises);
  DEFINE(lost, lost);
}
