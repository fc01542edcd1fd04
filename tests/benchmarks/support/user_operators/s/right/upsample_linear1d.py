import torch


def _taps(n_in, n_out, align_corners, dtype):
    i = torch.arange(n_out, dtype=dtype)
    if align_corners:
        pos = i * (n_in - 1) / max(n_out - 1, 1)
    else:
        pos = ((i + 0.5) * n_in / n_out - 0.5).clamp(min=0)
    left = pos.floor().long().clamp(max=n_in - 1)
    right = (left + 1).clamp(max=n_in - 1)
    return left, right, pos - left


class UpsampleLinear1d(torch.autograd.Function):
    """Linear interpolation of (..., T) to ``size`` samples, as F.interpolate does it."""

    @staticmethod
    def forward(ctx, x, size, align_corners=False):
        left, right, frac = _taps(x.shape[-1], size, align_corners, x.dtype)
        ctx.n_in, ctx.align = x.shape[-1], align_corners
        return x[..., left] * (1 - frac) + x[..., right] * frac

    @staticmethod
    def backward(ctx, grad):
        left, right, frac = _taps(ctx.n_in, grad.shape[-1], ctx.align, grad.dtype)
        gx = grad.new_zeros(grad.shape[:-1] + (ctx.n_in,))
        gx = gx.index_add(-1, left, grad * (1 - frac)).index_add(-1, right, grad * frac)
        return gx, None, None
