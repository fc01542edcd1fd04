// From a dtype at run time to one at compile time.
#pragma once

#include "arrays.h"
#include "numbers.h"

namespace gradlint::GRADLINT_SPACE {

// Calls body(T{}) with the element type T that `dtype` names.
template <class Body>
void with_dtype(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::float64:
      return body(double{});
    case Dtype::float32:
      return body(float{});
    case Dtype::float16:
      return body(Half{});
    case Dtype::bfloat16:
      return body(Bfloat16{});
  }
}

}  // namespace gradlint::GRADLINT_SPACE
