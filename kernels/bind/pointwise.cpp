// The operators of one tensor that are given by a function and its derivatives.
#include "pointwise.h"

namespace gradlint::bind {
namespace {

constexpr auto any_number = [](auto...) {};

GRADLINT_SMOOTH_OP(Square, square, "", any_number);
GRADLINT_SMOOTH_OP(Exp, exp, "", any_number);
GRADLINT_SMOOTH_OP(ScaledSigmoid, scaled_sigmoid, ", float scale", any_number);
GRADLINT_SMOOTH_OP(Gelu, gelu, "", any_number);
GRADLINT_SMOOTH_OP(Silu, silu, "", any_number);
GRADLINT_PIECEWISE_OP(Relu, relu, "", any_number);
GRADLINT_PIECEWISE_OP(SignSte, sign_ste, "", any_number);
GRADLINT_PIECEWISE_OP(ClippedRelu, clipped_relu, ", float ceiling", [](double ceiling) {
  TORCH_CHECK_VALUE(ceiling >= 0, "gradlint::clipped_relu: `ceiling` must be 0 or more, got ",
                    ceiling);
});
GRADLINT_PIECEWISE_OP(SoftThreshold, soft_threshold, ", float threshold", [](double threshold) {
  TORCH_CHECK_VALUE(threshold >= 0, "gradlint::soft_threshold: `threshold` must be 0 or more, got ",
                    threshold);
});

using Operators =
    Each<Smooth<Square>, Smooth<Exp>, Smooth<ScaledSigmoid, double>, Smooth<Gelu>, Smooth<Silu>,
         Piecewise<Relu>, Piecewise<SignSte>, Piecewise<ClippedRelu, double>,
         Piecewise<SoftThreshold, double>>;

}  // namespace

TORCH_LIBRARY_FRAGMENT(gradlint, m) { Operators::define(m); }

GRADLINT_EVERYWHERE(Operators::compute)

TORCH_LIBRARY_IMPL(gradlint, Autograd, m) { Operators::differentiate(m); }

}  // namespace gradlint::bind
