// The operators along rows or channels: layer_norm, batch_norm, gumbel_softmax and soft_rank.
#include "batch_norm.h"
#include "layer_norm.h"
#include "softmax.h"

namespace gradlint::bind {
namespace {

void compute(torch::Library& m) {
  batch_norm::compute(m);
  layer_norm::compute(m);
  softmax::compute(m);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(gradlint, m) {
  batch_norm::define(m);
  layer_norm::define(m);
  softmax::define(m);
}

GRADLINT_EVERYWHERE(compute)

TORCH_LIBRARY_IMPL(gradlint, CompositeExplicitAutograd, m) {
  m.impl("batch_norm", &batch_norm::without_derivative);
  m.impl("layer_norm", &layer_norm::without_derivative);
}

TORCH_LIBRARY_IMPL(gradlint, Autograd, m) {
  batch_norm::differentiate(m);
  layer_norm::differentiate(m);
  softmax::differentiate(m);
}

}  // namespace gradlint::bind
