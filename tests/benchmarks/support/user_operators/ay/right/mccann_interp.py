import torch
from torch.autograd import Function


class McCann1D(Function):
    """Displacement interpolation of two 1D samples: x, y (..., N), t scalar tensor -> sorted (..., N)"""

    @staticmethod
    def forward(ctx, x, y, t):
        xs, px = x.sort(-1)
        ys, py = y.sort(-1)
        ctx.save_for_backward(x, y, t, px, py)
        return (1 - t) * xs + t * ys

    @staticmethod
    def backward(ctx, g):
        x, y, t, px, py = ctx.saved_tensors
        gx = torch.zeros_like(g).scatter(-1, px, (1 - t) * g)
        gy = torch.zeros_like(g).scatter(-1, py, t * g)
        gt = (g * (y.gather(-1, py) - x.gather(-1, px))).sum()
        return gx, gy, gt
