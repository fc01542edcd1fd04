import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class DoReFaWeight(torch.autograd.Function):
    """w -> 2 q(tanh(w) / (2 max|tanh(w)|) + 1/2) - 1, q rounding to 2^bits - 1 levels.

    Straight-through: rounding has derivative one, so the gradient is that of tanh(w) / max|tanh(w)|,
    the maximum included.
    """

    @staticmethod
    def forward(ctx, w, bits):
        th = w.tanh()
        m = th.abs().max()
        ctx.save_for_backward(th, m)
        n = 2 ** bits - 1
        return 2 * torch.round((th / (2 * m) + 0.5) * n) / n - 1

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        th, m = ctx.saved_tensors
        gt = g / m
        return gt * (1 - th ** 2), None


class DoReFaLinear(nn.Linear):
    """nn.Linear with DoReFa weights (straight-through, see DoReFaWeight)."""

    def __init__(self, in_features, out_features, bias=True, bits=2):
        super().__init__(in_features, out_features, bias)
        self.bits = bits

    def forward(self, x):
        return F.linear(x, DoReFaWeight.apply(self.weight, self.bits), self.bias)
