// The operators that add up products: linear, attention and roi_align.
#include "attention.h"
#include "linear.h"
#include "roi_align.h"

namespace gradlint::bind {
namespace {

void compute(torch::Library& m) {
  linear::compute(m);
  attention::compute(m);
  roi_align::compute(m);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(gradlint, m) {
  linear::define(m);
  attention::define(m);
  roi_align::define(m);
}

GRADLINT_EVERYWHERE(compute)

TORCH_LIBRARY_IMPL(gradlint, Autograd, m) {
  linear::differentiate(m);
  attention::differentiate(m);
  roi_align::differentiate(m);
}

}  // namespace gradlint::bind
