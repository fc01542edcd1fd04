import torch


class LogPressureInterp(torch.autograd.Function):
    """Interpolation of a profile, linear in the logarithm of pressure.

    Args:
        field: ``(levels, columns)``.
        levels: pressures, positive and strictly increasing, ``(levels,)``, at least two.
        target: pressures wanted, between the first and the last level, ``(k,)``.

    Returns:
        ``(k, columns)``
    """

    @staticmethod
    def _weights(levels, target):
        hi = torch.searchsorted(levels.contiguous(), target.contiguous(), right=True).clamp(1, levels.shape[0] - 1)
        lo = hi - 1
        gap = (levels[hi] / levels[lo]).log()
        return lo, hi, gap, (target / levels[lo]).log() / gap

    @staticmethod
    def forward(ctx, field, levels, target):
        ctx.save_for_backward(field, levels, target)
        lo, hi, _, w = LogPressureInterp._weights(levels, target)
        return torch.lerp(field[lo], field[hi], w[:, None])

    @staticmethod
    def backward(ctx, grad):
        field, levels, target = ctx.saved_tensors
        lo, hi, gap, w = LogPressureInterp._weights(levels, target)
        w_hi = w[:, None]
        g_field = torch.zeros_like(field)
        g_field = g_field.index_add(0, lo, (1 - w_hi) * grad).index_add(0, hi, w_hi * grad)
        g_w = (grad * (field[hi] - field[lo])).sum(1) / gap
        g_levels = torch.zeros_like(levels)
        g_levels = g_levels.index_add(0, lo, g_w * (w - 1) / levels[lo]).index_add(0, hi, -g_w * w / levels[hi])
        return g_field, g_levels, g_w / target
