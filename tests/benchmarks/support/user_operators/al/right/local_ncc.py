"""Local normalised cross-correlation for registering one-dimensional profiles."""
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def _box(x, win):
    kernel = torch.ones(1, 1, win, dtype=x.dtype, device=x.device)
    return F.conv1d(x, kernel, padding=win // 2)


def _stats(fixed, moving, win):
    sf, sm = _box(fixed, win), _box(moving, win)
    cross = _box(fixed * moving, win) - sf * sm / win
    var_f = _box(fixed * fixed, win) - sf * sf / win
    var_m = _box(moving * moving, win) - sm * sm / win
    return sf, sm, cross, var_f, var_m


class _LocalNCC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fixed, moving, win, eps):
        ctx.win, ctx.eps = win, eps
        ctx.save_for_backward(fixed, moving)
        _, _, cross, var_f, var_m = _stats(fixed, moving, win)
        return -(cross**2 / (var_f * var_m + eps)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        fixed, moving = ctx.saved_tensors
        fixed, moving = fixed.to(grad.dtype), moving.to(grad.dtype)
        win = ctx.win
        sf, sm, cross, var_f, var_m = _stats(fixed, moving, win)
        den = var_f * var_m + ctx.eps
        d_cross = -2 * grad * cross / den
        d_den = grad * cross**2 / den**2

        def side(own, s_own, other, s_other, d_var):
            d = _box(d_cross, win) * other - _box(d_cross * s_other, win) / win
            return d + 2 * (own * _box(d_var, win) - _box(d_var * s_own, win) / win)

        d_fixed = side(fixed, sf, moving, sm, d_den * var_m)
        d_moving = side(moving, sm, fixed, sf, d_den * var_f)
        return d_fixed, d_moving, None, None


def local_ncc(fixed, moving, win=5, eps=1e-3):
    """Negative sum of the squared correlation over sliding windows.

    fixed, moving: (B, 1, N); win: odd window length
    """
    assert win % 2 == 1, "the window must be odd"
    return _LocalNCC.apply(fixed, moving, win, eps)
