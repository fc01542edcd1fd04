import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Quant(torch.autograd.Function):
    """Straight-through rounding on the integers of ``bits`` bits, with a learned step (LSQ)."""

    @staticmethod
    def forward(ctx, x, step, bits):
        lo, hi = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        ctx.save_for_backward(x, step)
        ctx.bits = bits
        return (x / step).round().clamp(lo, hi) * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        hi = 2 ** (ctx.bits - 1) - 1
        lo = -hi
        v = x / step
        below, above = v < lo, v > hi
        inside = ~(below | above)
        gx = g * inside
        per = torch.where(inside, v.round() - v, torch.where(below, torch.full_like(v, lo), torch.full_like(v, hi)))
        return gx, (g * per).sum_to_size(step.shape), None


class GroupFakeQuant(nn.Module):
    """Fake quantisation, one learned step per group of ``group`` channels of the last dimension."""

    def __init__(self, channels, group, bits=3):
        super().__init__()
        assert channels % group == 0
        self.group, self.bits = group, bits
        self.step = nn.Parameter(torch.linspace(0.4, 0.5, channels // group))

    def forward(self, x):
        grouped = x.unflatten(-1, (-1, self.group))
        return _Quant.apply(grouped, self.step[:, None], self.bits).flatten(-2)
