// What the bindings of the normalizations share.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "common.h"

namespace gradlint::bind {

using Optional = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

inline bool given(const Optional& tensor) { return tensor.has_value() && tensor->defined(); }

// Dense, and kept alive by `keep` while its memory is used; null where absent or without memory.
inline const void* data_of(const Optional& tensor, std::vector<Tensor>& keep) {
  if (!given(tensor) || tensor->is_meta()) return nullptr;
  return keep.emplace_back(tensor->contiguous()).const_data_ptr();
}

inline void* output_of(const Tensor& tensor) {
  return tensor.is_meta() || tensor.numel() == 0 ? nullptr : tensor.mutable_data_ptr();
}

inline at::TensorOptions wide_options(const Tensor& x) {
  return x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

inline Tensor dense_like(const Tensor& x, bool wanted) {
  return wanted ? at::empty_symint(x.sym_sizes(), x.options()) : at::empty({0}, x.options());
}

inline Optional optional_of(const Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : Optional();
}

inline void check_eps(const char* op, double eps) {
  TORCH_CHECK_VALUE(eps > 0 && std::isfinite(eps), "gradlint::", op,
                    ": `eps` must be a positive finite number, got ", eps);
}

// Raises unless `tensor`, which the forward saved of `x`, has the wide type of `x` and `sizes`.
inline void check_saved(const char* op, const char* name, const Tensor& tensor, const Tensor& x,
                        c10::SymIntArrayRef sizes) {
  const auto options = wide_options(x);
  TORCH_CHECK_TYPE(tensor.scalar_type() == c10::typeMetaToScalarType(options.dtype()),
                   "gradlint::", op, ": `", name, "` must be ", options.dtype(), " for `x` of ",
                   x.scalar_type(), ", got ", tensor.scalar_type());
  TORCH_CHECK(tensor.device() == x.device(), "gradlint::", op, ": `", name,
              "` must be on the device of `x`, ", x.device(), ", got ", tensor.device());
  TORCH_CHECK(tensor.sym_sizes().equals(sizes), "gradlint::", op, ": `", name,
              "` must have the shape ", sizes, " that goes with `x`, got ", tensor.sym_sizes());
}

}  // namespace gradlint::bind
