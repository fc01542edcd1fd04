import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, theta, pairs):
        y = x.clone()
        c, s = theta.cos(), theta.sin()
        for k, (i, j) in enumerate(pairs):
            a, b = y[:, i].clone(), y[:, j].clone()
            y[:, i] = c[k] * a - s[k] * b
            y[:, j] = s[k] * a + c[k] * b
        ctx.save_for_backward(y, theta)
        ctx.pairs = pairs
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, theta = ctx.saved_tensors
        # undo the rotations one by one, so that no intermediate has to be stored
        y, g = y.clone(), g.clone()
        gt = torch.zeros_like(theta)
        c, s = theta.cos(), theta.sin()
        for k in range(len(ctx.pairs) - 1, -1, -1):
            i, j = ctx.pairs[k]
            gt[k] = (g[:, j] * y[:, i] - g[:, i] * y[:, j]).sum()
            for t in (y, g):
                a, b = t[:, i].clone(), t[:, j].clone()
                t[:, i] = c[k] * a + s[k] * b
                t[:, j] = c[k] * b - s[k] * a
        return g, gt, None


class GivensLayer(nn.Module):
    """orthogonal layer of one plane rotation per pair of neighbouring features"""

    def __init__(self, dim, rounds=1):
        super().__init__()
        self.pairs = [(i, i + 1) for _ in range(rounds) for i in range(dim - 1)]
        self.theta = nn.Parameter(torch.zeros(len(self.pairs)))

    def forward(self, x):
        return _Rotate.apply(x, self.theta, self.pairs)
