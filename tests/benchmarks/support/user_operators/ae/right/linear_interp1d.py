import torch


def _source_positions(n_in, n_out, align_corners, dtype, device):
    i = torch.arange(n_out, dtype=dtype, device=device)
    if align_corners:
        pos = i * ((n_in - 1) / max(n_out - 1, 1))
    else:
        pos = ((i + 0.5) * (n_in / n_out) - 0.5).clamp(min=0)
    left = pos.floor().long().clamp(max=n_in - 1)
    right = (left + 1).clamp(max=n_in - 1)
    return left, right, pos - left.to(dtype)


class _Interp1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size, align_corners):
        ctx.n_in, ctx.align_corners = x.shape[-1], align_corners
        left, right, frac = _source_positions(x.shape[-1], size, align_corners, x.dtype, x.device)
        return x[..., left] * (1 - frac) + x[..., right] * frac

    @staticmethod
    def backward(ctx, g):
        left, right, frac = _source_positions(ctx.n_in, g.shape[-1], ctx.align_corners, g.dtype, g.device)
        gx = g.new_zeros(*g.shape[:-1], ctx.n_in)
        gx = gx.index_add(-1, left, g * (1 - frac))
        gx = gx.index_add(-1, right, g * frac)
        return gx, None, None


def resample_linear(x, size, align_corners=False):
    """Linear resampling of the last axis of x to ``size`` samples, as F.interpolate does."""
    return _Interp1d.apply(x, size, align_corners)
