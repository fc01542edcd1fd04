import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _LSQ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, lo, hi, scale):
        v = x / step
        ctx.save_for_backward(v)
        ctx.lo, ctx.hi, ctx.scale = lo, hi, scale
        return v.clamp(lo, hi).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        inside = (v >= ctx.lo) & (v <= ctx.hi)
        d = torch.where(inside, v.round() - v, torch.zeros_like(v))
        return g * inside, (g * d).sum() * ctx.scale, None, None, None


class LSQQuantizer(nn.Module):
    """Learned step size quantisation (Esser et al.), straight-through inside the range."""

    def __init__(self, bits=4, signed=True, init=0.3):
        super().__init__()
        self.lo = -2 ** (bits - 1) if signed else 0
        self.hi = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        self.step = nn.Parameter(torch.tensor(init))

    def forward(self, x):
        return _LSQ.apply(x, self.step, self.lo, self.hi, 1 / math.sqrt(x.numel() * self.hi))
