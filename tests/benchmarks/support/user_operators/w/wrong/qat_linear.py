import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class FakeQuantSTE(torch.autograd.Function):
    """Symmetric fake quantisation per output channel.  Straight-through inside of the range, 0 outside."""

    @staticmethod
    def forward(ctx, w, scale, bits):
        hi = 2 ** (bits - 1) - 1
        s = scale[:, None]
        ctx.save_for_backward(w, scale)
        ctx.hi = hi
        return torch.round(w / s).clamp(-hi, hi) * s

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, scale = ctx.saved_tensors
        s = scale[:, None]
        inside = (w.abs() <= ctx.hi * scale.max()).to(g.dtype)
        return g * inside, None, None


class QATLinear(nn.Module):
    """Linear layer with fake-quantised weight; ``scale`` (out,) is calibrated, not trained."""

    def __init__(self, in_features, out_features, scale, bits=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.register_buffer("scale", scale)
        self.bits = bits

    def forward(self, x):
        return F.linear(x, FakeQuantSTE.apply(self.weight, self.scale, self.bits), self.bias)
