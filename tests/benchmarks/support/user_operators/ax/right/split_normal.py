import math

import torch
from torch import nn


class _SplitNormal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, loc, lower, upper):
        ctx.save_for_backward(x, loc, lower, upper)
        d = x - loc
        scale = torch.where(d < 0, lower, upper)
        return 0.5 * math.log(2 / math.pi) - (lower + upper).log() - (d / scale).pow(2) / 2

    @staticmethod
    def backward(ctx, grad):
        x, loc, lower, upper = ctx.saved_tensors
        d = x - loc
        left = d < 0
        scale = torch.where(left, lower, upper)
        g_x = -grad * d / scale**2
        norm = grad / (lower + upper)
        fit = grad * d**2 / scale**3
        zero = torch.zeros_like(fit)
        g_lower = torch.where(left, fit, zero) - norm
        g_upper = torch.where(left, zero, fit) - norm
        n = x.dim() - 1
        return g_x, -_rows(g_x, n), _rows(g_lower, n), _rows(g_upper, n)


def _rows(g, n):
    return g.sum(tuple(range(n))) if n else g


class SplitNormal(nn.Module):
    """Independent two-piece normal densities with learned location and scales.

    Args:
        dim (int): number of variables.

    ``forward`` takes ``(..., dim)`` and returns log densities of the same shape.
    """

    def __init__(self, dim):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(dim))
        self.log_lower = nn.Parameter(torch.zeros(dim))
        self.log_upper = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return _SplitNormal.apply(x, self.loc, self.log_lower.exp(), self.log_upper.exp())
