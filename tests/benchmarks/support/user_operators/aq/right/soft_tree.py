import torch
from torch import nn
from torch.autograd.function import once_differentiable


class RouteFn(torch.autograd.Function):
    """decision probabilities (B, 2^D - 1), heap order -> leaf probabilities (B, 2^D)"""

    @staticmethod
    def forward(ctx, p):
        mu = torch.ones_like(p[:, :1])
        levels = []
        lo = 0
        while lo < p.shape[1]:
            q = p[:, lo:2 * lo + 1]
            levels.append(mu)
            mu = torch.stack([mu * q, mu * (1 - q)], -1).flatten(1)
            lo = 2 * lo + 1
        ctx.save_for_backward(p, *levels)
        return mu

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        p, *levels = ctx.saved_tensors
        gp = torch.empty_like(p)
        hi = p.shape[1]
        for mu in reversed(levels):
            lo = hi // 2
            q = p[:, lo:hi]
            left, right = g.reshape(len(p), -1, 2).unbind(-1)
            gp[:, lo:hi] = mu * (left - right)
            g = left * q + right * (1 - q)
            hi = lo
        return gp


class SoftTree(nn.Module):
    def __init__(self, features, depth, outputs):
        super().__init__()
        self.inner = nn.Linear(features, 2 ** depth - 1)
        self.leaf = nn.Parameter(torch.zeros(2 ** depth, outputs))

    def forward(self, x):
        return RouteFn.apply(torch.sigmoid(self.inner(x))) @ self.leaf
