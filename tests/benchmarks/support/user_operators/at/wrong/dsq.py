import math

import torch
import torch.nn as nn


def _cells(x, lo, up, n):
    z = ((x - lo) / (up - lo) * n).clamp(0, n)
    i = z.floor().clamp(max=n - 1).detach()
    return i, z - i - 0.5


class DSQFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, up, alpha, bits):
        n = 2 ** bits - 1
        ctx.save_for_backward(x, lo, up, alpha)
        ctx.n = n
        i, c = _cells(x, lo, up, n)
        phi = torch.tanh(torch.log(2 / alpha - 1) * c) / (1 - alpha)
        return lo + (up - lo) / n * (i + (phi + 1) / 2)

    @staticmethod
    def backward(ctx, g):
        x, lo, up, alpha = ctx.saved_tensors
        n = ctx.n
        step = (up - lo) / n
        i, c = _cells(x, lo, up, n)
        inside = ((x > lo) & (x < up)).to(g.dtype)
        L = torch.log(2 / alpha - 1)
        th = torch.tanh(L * c)
        level = (i + (th / (1 - alpha) + 1) / 2) / n
        d_c = 0.5 * (1 - th * th) / (1 - alpha)      # d level * n / d(L c)
        slope = d_c * L * inside
        z = (x - lo) / step
        gx = g * slope
        glo = (g * (1 - level + slope * (z / n - 1))).sum()
        gup = (g * (level - slope * z / n)).sum()
        galpha = (g * step * (-d_c * c * 2 / (alpha * (2 - alpha)))).sum()
        return gx, glo, gup, galpha, None


class DSQ(nn.Module):
    """Differentiable soft quantization, soft mode (Gong et al. 2019)."""

    def __init__(self, bits=2, lower=-1.0, upper=1.0, alpha=0.2):
        super().__init__()
        self.bits = bits
        self.lower = nn.Parameter(torch.tensor(lower))
        self.upper = nn.Parameter(torch.tensor(upper))
        self.alpha = nn.Parameter(torch.tensor(alpha))

    def forward(self, x):
        return DSQFunction.apply(x, self.lower, self.upper, self.alpha, self.bits)
