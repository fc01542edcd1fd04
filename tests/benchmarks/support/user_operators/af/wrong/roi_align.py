import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _sample_points(rois, out_size, scale, ratio, aligned=False):
    """x and y of all samples: (K, out, ratio) each"""
    off = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (rois * scale - off).unbind(1)
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = w.clamp(min=1.0), h.clamp(min=1.0)
    steps = (torch.arange(out_size * ratio, dtype=rois.dtype, device=rois.device) + 0.5) / (out_size * ratio)
    xs = x1[:, None] + w[:, None] * steps
    ys = y1[:, None] + h[:, None] * steps
    return xs.view(-1, out_size, ratio), ys.view(-1, out_size, ratio)


def _axis_weights(pos, size):
    """interpolation matrix (K, out, size), averaged over the samples of a bin"""
    inside = (pos > -1) & (pos < size)
    p = pos.clamp(0, size - 1)
    grid = torch.arange(size, dtype=pos.dtype, device=pos.device)
    w = (1 - (p[..., None] - grid).abs()).clamp(min=0) * inside[..., None]
    return w.mean(2)


class RoIAlign(Function):
    """input (C, H, W), rois (K, 4) as x1, y1, x2, y2 -> (K, C, out, out). No gradient for rois."""

    @staticmethod
    def forward(ctx, input, rois, output_size, spatial_scale=1.0, sampling_ratio=2, aligned=False):
        C, H, W = input.shape
        xs, ys = _sample_points(rois, output_size, spatial_scale, sampling_ratio, aligned)
        wx, wy = _axis_weights(xs, W), _axis_weights(ys, H)
        ctx.save_for_backward(rois)
        ctx.conf = (output_size, spatial_scale, sampling_ratio, aligned)
        ctx.hw = (H, W)
        return torch.einsum("kph,chw,kqw->kcpq", wy, input, wx)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (rois,) = ctx.saved_tensors
        output_size, spatial_scale, sampling_ratio, aligned = ctx.conf
        H, W = ctx.hw
        xs, ys = _sample_points(rois, output_size, spatial_scale, sampling_ratio)
        wx, wy = _axis_weights(xs, W), _axis_weights(ys, H)
        grad_input = torch.einsum("kph,kcpq,kqw->chw", wy, grad, wx)
        return grad_input, None, None, None, None, None
