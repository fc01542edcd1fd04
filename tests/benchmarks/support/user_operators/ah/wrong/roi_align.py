"""Reference RoIAlign, kept in step with the CUDA kernel in ``ops/csrc``."""
import math

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.modules.utils import _pair


def _sample_points(roi: Tensor, out_size, spatial_scale, sampling_ratio, aligned=False):
    """Coordinates of all bilinear samples of one roi, flattened bin by bin.

    Returns ``(ys, xs, count)`` where ``ys`` and ``xs`` are ``(ph * pw, count)``.
    """
    ph, pw = out_size
    offset = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (float(v) * spatial_scale - offset for v in roi[1:])
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = max(w, 1.0), max(h, 1.0)
    gh = sampling_ratio if sampling_ratio > 0 else max(int(math.ceil(h / ph)), 1)
    gw = sampling_ratio if sampling_ratio > 0 else max(int(math.ceil(w / pw)), 1)
    kw = dict(dtype=torch.float64, device=roi.device)
    iy = (torch.arange(ph, **kw)[:, None] + (torch.arange(gh, **kw) + 0.5) / gh) * h / ph + y1
    ix = (torch.arange(pw, **kw)[:, None] + (torch.arange(gw, **kw) + 0.5) / gw) * w / pw + x1
    ys = iy[:, None, :, None].expand(ph, pw, gh, gw).reshape(ph * pw, gh * gw)
    xs = ix[None, :, None, :].expand(ph, pw, gh, gw).reshape(ph * pw, gh * gw)
    return ys, xs, gh * gw


def _corners(ys, xs, height, width):
    """Yield ``(flat index, weight)`` for the four neighbours of every sample."""
    inside = (ys >= -1.0) & (ys <= height) & (xs >= -1.0) & (xs <= width)
    ys = ys.clamp(0, height - 1)
    xs = xs.clamp(0, width - 1)
    y0, x0 = ys.floor().long(), xs.floor().long()
    y1, x1 = (y0 + 1).clamp(max=height - 1), (x0 + 1).clamp(max=width - 1)
    ly, lx = ys - y0, xs - x0
    for yy, wy in ((y0, 1 - ly), (y1, ly)):
        for xx, wx in ((x0, 1 - lx), (x1, lx)):
            yield yy * width + xx, wy * wx * inside


class RoIAlignFunction(Function):
    """RoIAlign with average pooling.

    Args:
        input: ``(N, C, H, W)`` features.
        rois: ``(K, 5)`` boxes as ``(batch_index, x1, y1, x2, y2)``; treated as constants.
        output_size: int or pair, size of the pooled map.
        spatial_scale: scale of the features relative to the boxes.
        sampling_ratio: samples per bin along each axis, ``0`` for adaptive.
        aligned: shift by half a pixel.

    Returns:
        ``(K, C, ph, pw)``
    """

    @staticmethod
    def forward(ctx, input, rois, output_size, spatial_scale=1.0, sampling_ratio=0, aligned=True):
        if rois.dim() != 2 or rois.size(1) != 5:
            raise ValueError("rois must be a tensor of shape (K, 5)")
        if input.dim() != 4:
            raise ValueError("input must be a 4D tensor")
        ctx.output_size = _pair(output_size)
        ctx.spatial_scale = spatial_scale
        ctx.sampling_ratio = sampling_ratio
        ctx.aligned = aligned
        ctx.input_shape = input.shape
        ctx.save_for_backward(rois)
        n, c, h, w = input.shape
        ph, pw = ctx.output_size
        out = input.new_zeros(rois.size(0), c, ph * pw)
        flat = input.reshape(n, c, h * w)
        for k, roi in enumerate(rois):
            ys, xs, count = _sample_points(roi, ctx.output_size, spatial_scale, sampling_ratio, aligned)
            for index, weight in _corners(ys, xs, h, w):
                out[k] += (flat[int(roi[0])][:, index] * weight.to(input.dtype)).sum(-1) / count
        return out.view(rois.size(0), c, ph, pw)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (rois,) = ctx.saved_tensors
        n, c, h, w = ctx.input_shape
        grad_input = grad_output.new_zeros(n, c, h * w)
        grad = grad_output.reshape(rois.size(0), c, -1, 1)
        for k, roi in enumerate(rois):
            ys, xs, count = _sample_points(
                roi, ctx.output_size, ctx.spatial_scale, ctx.sampling_ratio
            )
            for index, weight in _corners(ys, xs, h, w):
                contribution = grad[k] * weight.to(grad.dtype) / count
                grad_input[int(roi[0])].index_add_(1, index.reshape(-1), contribution.reshape(c, -1))
        return grad_input.view(n, c, h, w), None, None, None, None, None
