// A wrong operator in C++: backward reads grad_output as if it were contiguous.
//
// The gradient is right whenever grad_output lies in memory as the output does, which is what most
// tests hand in. The gradient of `y.mT.sum()` or of `y.sum()` lies otherwise: the first comes
// transposed, the second is one number expanded with stride 0, behind which the loop reads memory
// that is not its own. gradlint reports GL701 and GL702.
//
// The cure is one word: grad_outputs[0].contiguous().
//
// torch/extension.h would serve as well, and takes twice as long to compile as these headers.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/utils/pybind.h>

#include <cmath>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class LogCosh : public torch::autograd::Function<LogCosh> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& input) {
    TORCH_CHECK_TYPE(input.scalar_type() == at::kDouble, "log_cosh: `x` must be float64, got ",
                     input.scalar_type());
    const Tensor x = input.contiguous();
    ctx->save_for_backward({x});
    Tensor y = at::empty_like(x);
    const double* from = x.const_data_ptr<double>();
    double* to = y.mutable_data_ptr<double>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double size = std::abs(from[i]);
      to[i] = size + std::log1p(std::exp(-2 * size)) - std::log(2.0);
    }
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const Tensor x = ctx->get_saved_variables()[0];
    Tensor grad_x = at::empty_like(x);
    const double* value = x.const_data_ptr<double>();
    const double* grad = grad_outputs[0].const_data_ptr<double>();  // the fault
    double* to = grad_x.mutable_data_ptr<double>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = grad[i] * std::tanh(value[i]);
    return {grad_x};
  }
};

Tensor log_cosh(const Tensor& x) { return LogCosh::apply(x); }

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("log_cosh", &log_cosh, pybind11::arg("x")); }
