// roi_align: differentiable once, in the image; boxes have no gradient.
#pragma once

#include <cmath>
#include <vector>

#include "common.h"

namespace gradlint::bind::roi_align {

using Forward = Tensor(const Tensor&, const Tensor&, double, int64_t, int64_t, int64_t, bool);
using Backward = Tensor(const Tensor&, const Tensor&, double, int64_t, bool, c10::SymIntArrayRef);

inline void check_boxes(const char* op, const Tensor& boxes, double spatial_scale,
                        int64_t sampling_ratio) {
  TORCH_CHECK(boxes.dim() == 2 && boxes.sym_size(1) == 5, "gradlint::", op, ": `boxes` must have "
              "the shape (K, 5), each the number of an image, x1, y1, x2, y2, got ",
              boxes.sym_sizes());
  TORCH_CHECK_VALUE(spatial_scale > 0 && std::isfinite(spatial_scale), "gradlint::", op,
                    ": `spatial_scale` must be positive and finite, got ", spatial_scale);
  TORCH_CHECK_VALUE(sampling_ratio >= 0, "gradlint::", op,
                    ": `sampling_ratio` must be positive, or 0 for as many samples as a bin has "
                    "pixels, got ", sampling_ratio);
}

// On the CPU, where looking costs nothing, a box of no image is an error. On CUDA it would make
// the host wait for the device: there such a box gives NaN.
inline void check_images(const Tensor& boxes, int64_t images) {
  if (!boxes.is_cpu()) return;
  const Tensor numbers = boxes.select(1, 0).to(at::kDouble).contiguous();
  const double* number = numbers.const_data_ptr<double>();
  for (int64_t k = 0; k < numbers.numel(); ++k) {
    TORCH_CHECK_INDEX(number[k] >= 0 && number[k] < static_cast<double>(images) &&
                          std::floor(number[k]) == number[k],
                      "gradlint::roi_align: `boxes`[", k, ", 0] must be the number of an image of "
                      "`input`, a whole number from 0 on and below ", images, ", got ", number[k]);
  }
}

inline RoiAlign roi_of(const Tensor& boxes, at::IntArrayRef input, at::IntArrayRef output,
                       double spatial_scale, int64_t sampling_ratio, bool aligned) {
  RoiAlign roi{};
  roi.dtype = dtype_of(boxes);
  roi.images = input[0];
  roi.channels = input[1];
  roi.height = input[2];
  roi.width = input[3];
  roi.boxes = boxes.size(0);
  roi.pooled_height = output[2];
  roi.pooled_width = output[3];
  roi.sampling_ratio = sampling_ratio;
  roi.spatial_scale = spatial_scale;
  roi.aligned = aligned;
  return roi;
}

inline Tensor roi_align(const Tensor& input, const Tensor& boxes, double spatial_scale,
                        int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                        bool aligned) {
  check_floating("roi_align", "input", input);
  check_kind("roi_align", "boxes", boxes, "input", input);
  TORCH_CHECK(input.dim() == 4,
              "gradlint::roi_align: `input` must have the shape (N, C, H, W), got ",
              input.sym_sizes());
  check_boxes("roi_align", boxes, spatial_scale, sampling_ratio);
  TORCH_CHECK_VALUE(pooled_height > 0 && pooled_width > 0,
                    "gradlint::roi_align: `pooled_height` and `pooled_width` must be positive, "
                    "got ",
                    pooled_height, " and ", pooled_width);
  Tensor output = at::empty_symint(
      {boxes.sym_size(0), input.sym_size(1), pooled_height, pooled_width}, input.options());
  if (output.is_meta()) return output;
  check_images(boxes, input.size(0));
  const Tensor image = input.contiguous(), dense_boxes = boxes.contiguous();
  const RoiAlign roi = roi_of(dense_boxes, image.sizes(), output.sizes(), spatial_scale,
                              sampling_ratio, aligned);
  GRADLINT_RUN(roi_align, output, roi, image.const_data_ptr(), dense_boxes.const_data_ptr(),
               output.data_ptr());
  return output;
}

inline Tensor roi_align_backward(const Tensor& grad_output, const Tensor& boxes,
                                 double spatial_scale, int64_t sampling_ratio, bool aligned,
                                 c10::SymIntArrayRef input_size) {
  check_floating("roi_align_backward", "grad_output", grad_output);
  check_kind("roi_align_backward", "boxes", boxes, "grad_output", grad_output);
  check_boxes("roi_align_backward", boxes, spatial_scale, sampling_ratio);
  TORCH_CHECK(input_size.size() == 4,
              "gradlint::roi_align_backward: `input_size` must be N, C, H and W, got ", input_size);
  TORCH_CHECK(grad_output.dim() == 4 && grad_output.sym_size(0) == boxes.sym_size(0) &&
                  grad_output.sym_size(1) == input_size[1],
              "gradlint::roi_align_backward: `grad_output` must have the shape [",
              boxes.sym_size(0), ", ", input_size[1], ", pooled_height, pooled_width], got ",
              grad_output.sym_sizes());
  Tensor grad_input = at::empty_symint(input_size, grad_output.options());
  if (grad_input.is_meta()) return grad_input;
  const Tensor g = grad_output.contiguous(), dense_boxes = boxes.contiguous();
  RoiAlign roi = roi_of(dense_boxes, grad_input.sizes(), g.sizes(), spatial_scale, sampling_ratio,
                        aligned);
  const Tensor touching =
      at::empty({roi.images * roi.tiles() * roi.words()}, g.options().dtype(at::kInt));
  roi.touching = static_cast<uint32_t*>(touching.data_ptr());
  GRADLINT_RUN(roi_align_backward, grad_input, roi, g.const_data_ptr(),
               dense_boxes.const_data_ptr(), grad_input.data_ptr());
  return grad_input;
}

struct RoiAlignFunction : torch::autograd::Function<RoiAlignFunction> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& boxes,
                        double spatial_scale, int64_t pooled_height, int64_t pooled_width,
                        int64_t sampling_ratio, bool aligned) {
    static const auto op = operation<Forward>("roi_align");
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({boxes});
    ctx->saved_data["spatial_scale"] = spatial_scale;
    ctx->saved_data["sampling_ratio"] = sampling_ratio;
    ctx->saved_data["aligned"] = aligned;
    ctx->saved_data["input_size"] = input.sym_sizes();
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(input, boxes, spatial_scale, pooled_height, pooled_width, sampling_ratio,
                   aligned);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = operation<Backward>("roi_align_backward");
    variable_list result(7);
    if (!grads[0].defined() || !ctx->needs_input_grad(0)) return result;
    auto& data = ctx->saved_data;
    result[0] = op.call(grads[0], ctx->get_saved_variables()[0], data["spatial_scale"].toDouble(),
                        data["sampling_ratio"].toInt(), data["aligned"].toBool(),
                        data["input_size"].toSymIntVector());
    return result;
  }
};

inline Tensor differentiable_roi_align(const Tensor& input, const Tensor& boxes,
                                       double spatial_scale, int64_t pooled_height,
                                       int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  return RoiAlignFunction::apply(input, boxes, spatial_scale, pooled_height, pooled_width,
                                 sampling_ratio, aligned);
}

inline void compute(torch::Library& m) {
  m.impl("roi_align", &roi_align);
  m.impl("roi_align_backward", &roi_align_backward);
}

inline void define(torch::Library& m) {
  m.def(
      "roi_align(Tensor input, Tensor boxes, float spatial_scale, int pooled_height, "
      "int pooled_width, int sampling_ratio=0, bool aligned=False) -> Tensor");
  m.def(
      "roi_align_backward(Tensor grad_output, Tensor boxes, float spatial_scale, "
      "int sampling_ratio, bool aligned, SymInt[] input_size) -> Tensor");
}

inline void differentiate(torch::Library& m) {
  m.impl("roi_align", &differentiable_roi_align);
  m.impl("roi_align_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace gradlint::bind::roi_align
