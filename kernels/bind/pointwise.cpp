// The operators of one tensor that are given by a function and its two derivatives.
#include "pointwise.h"

namespace gradlint::bind {
namespace {

GRADLINT_POINTWISE_OP(Square, square, "");

// Calls Operator::step(m) for every operator.
#define GRADLINT_EACH(step, m) Pointwise<Square>::step(m)

void compute(torch::Library& m) { GRADLINT_EACH(compute, m); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(gradlint, m) { GRADLINT_EACH(define, m); }

GRADLINT_EVERYWHERE(compute)

TORCH_LIBRARY_IMPL(gradlint, Autograd, m) { GRADLINT_EACH(differentiate, m); }

}  // namespace gradlint::bind
