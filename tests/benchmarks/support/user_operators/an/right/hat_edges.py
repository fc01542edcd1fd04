import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _Hat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coef, lo, hi, owner):
        G = coef.shape[1]
        scale = (G - 1) / (hi - lo)
        pos = ((x - lo) * scale).clamp(0, G - 1)
        cell = pos.floor().long().clamp(max=G - 2)
        frac = pos - cell
        inside = (x > lo) & (x < hi)
        ctx.save_for_backward(cell, frac, inside, coef)
        ctx.scale = scale
        owner.last_cell = cell          # read by the grid refinement hook
        c = coef.expand(len(x), -1, -1)
        left = c.gather(2, cell[..., None])[..., 0]
        right = c.gather(2, cell[..., None] + 1)[..., 0]
        return left + frac * (right - left)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        cell, frac, inside, coef = ctx.saved_tensors
        c = coef.expand(len(g), -1, -1)
        rise = (c.gather(2, cell[..., None] + 1) - c.gather(2, cell[..., None]))[..., 0]
        gx = g * rise * ctx.scale * inside
        gc = torch.zeros_like(c, memory_format=torch.contiguous_format)
        gc.scatter_add_(2, cell[..., None], (g * (1 - frac))[..., None])
        gc.scatter_add_(2, cell[..., None] + 1, (g * frac)[..., None])
        return gx, gc.sum(0), None, None, None


class HatEdges(nn.Module):
    """One piecewise-linear activation per feature, constant outside [lo, hi].  (N, F) -> (N, F)"""

    def __init__(self, features, grid=6, lo=-1.0, hi=1.0):
        super().__init__()
        self.coef = nn.Parameter(torch.randn(features, grid) * 0.1)
        self.lo, self.hi = lo, hi
        self.last_cell = None

    def forward(self, x):
        return _Hat.apply(x, self.coef, self.lo, self.hi, self)
