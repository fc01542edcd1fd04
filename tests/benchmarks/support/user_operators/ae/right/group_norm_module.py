import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _GroupNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, groups, eps):
        n, c = x.shape[:2]
        xg = x.reshape(n, groups, -1)
        mean = xg.mean(-1, keepdim=True)
        rstd = (xg.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        xhat = ((xg - mean) * rstd).reshape(n, c, -1)
        ctx.save_for_backward(xhat, rstd, gamma)
        ctx.groups = groups
        out = xhat * gamma[:, None] + beta[:, None]
        return out.reshape(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        xhat, rstd, gamma = ctx.saved_tensors
        n, c, hw = xhat.shape
        g = dout.reshape(n, c, hw)
        dgamma = (g * xhat).sum((0, 2))
        dbeta = g.sum((0, 2))
        dxhat = (g * gamma[:, None]).reshape(n, ctx.groups, c // ctx.groups, hw)
        xh = xhat.reshape(n, ctx.groups, c // ctx.groups, hw)
        m1 = dxhat.mean((2, 3), keepdim=True)
        m2 = (dxhat * xh).mean((2, 3), keepdim=True)
        dx = (dxhat - m1 - xh * m2) * rstd[..., None]
        return dx.reshape(dout.shape), dgamma, dbeta, None, None


class GroupNorm(nn.Module):
    """Group normalisation of (N, C, *) with its own backward."""

    def __init__(self, num_groups, num_channels, eps=1e-5):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.eps = num_groups, eps
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x):
        return _GroupNormFn.apply(x, self.weight, self.bias, self.num_groups, self.eps)
