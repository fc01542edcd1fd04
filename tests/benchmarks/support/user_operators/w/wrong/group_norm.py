import torch
from torch import nn


class GroupNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, groups, eps):
        N, C = x.shape[:2]
        xg = x.reshape(N, groups, -1)
        xh = (xg - xg.mean(-1, keepdim=True)) / (xg.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
        xh = xh.reshape(x.shape)
        ctx.save_for_backward(x, gamma)
        ctx.groups, ctx.eps = groups, eps
        s = (1, C) + (1,) * (x.dim() - 2)
        return xh * gamma.view(s) + beta.view(s)

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        N, C = x.shape[:2]
        G = ctx.groups
        s = (1, C) + (1,) * (x.dim() - 2)
        dims = [0] + list(range(2, x.dim()))
        xg = x.reshape(N, G, -1)
        m = xg.shape[-1]
        mean = xg.sum(-1, keepdim=True) / m
        inv = ((xg - mean).pow(2).sum(-1, keepdim=True) / m + ctx.eps).rsqrt()
        xh = (xg - mean) * inv
        d = (dy * gamma.view(s)).reshape(N, G, -1)
        dx = inv * (d - (d.sum(-1, keepdim=True) + xh * (d * xh).sum(-1, keepdim=True)) / C)
        dgamma = (dy * xh.reshape(x.shape)).sum(dims)
        dbeta = dy.sum(dims)
        return dx.reshape(x.shape), dgamma, dbeta, None, None


class GroupNorm(nn.Module):
    def __init__(self, groups, channels, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return GroupNormFunction.apply(x, self.weight, self.bias, self.groups, self.eps)
