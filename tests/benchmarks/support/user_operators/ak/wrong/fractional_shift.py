import torch
from torch import nn


def _take(x, n):
    """x[b, t - n[c], c], zero outside"""
    at = torch.arange(x.shape[1], device=x.device)[:, None] - n
    ok = (at >= 0) & (at < x.shape[1])
    return x.gather(1, at.clamp(0, x.shape[1] - 1).expand_as(x)) * ok


class _Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, offset):
        ctx.save_for_backward(x, offset)
        n = offset.floor().long()
        f = offset - n
        return (1 - f) * _take(x, n) + f * _take(x, n + 1)

    @staticmethod
    def backward(ctx, g):
        x, offset = ctx.saved_tensors
        n = offset.floor().long()
        f = offset - n
        gx = (1 - f) * _take(g, -n) + f * _take(g, -n - 1)
        go = (g * (_take(x, n) - _take(x, n + 1))).sum((0, 1))
        return gx, go


class TemporalShift(nn.Module):
    """Every channel moves in time by a learned, fractional number of steps. x: (B, T, C)"""

    def __init__(self, channels):
        super().__init__()
        self.offset = nn.Parameter(torch.linspace(-1.5, 1.5, channels))

    def forward(self, x):
        return _Shift.apply(x, self.offset)
