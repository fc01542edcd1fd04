import torch
from torch import nn


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, groups, eps):
        ctx.save_for_backward(x, weight)
        ctx.groups, ctx.eps = groups, eps
        b, c = x.shape[:2]
        xg = x.reshape(b, groups, -1)
        var, mean = torch.var_mean(xg, -1, unbiased=False, keepdim=True)
        xhat = ((xg - mean) * (var + eps).rsqrt()).reshape(b, c, -1)
        return (xhat * weight[:, None] + bias[:, None]).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        b, c = x.shape[:2]
        xg = x.reshape(b, ctx.groups, -1)
        var, mean = torch.var_mean(xg, -1, unbiased=False, keepdim=True)
        rstd = (var + ctx.eps).rsqrt()
        xhat = (xg - mean) * rstd
        g = g.reshape(b, c, -1)
        g_weight = (g * xhat.reshape(b, c, -1)).sum((0, 2))
        g_bias = g.sum((0, 2))
        gh = g.reshape(xg.shape)
        gx = rstd * (gh - gh.mean(-1, keepdim=True) - xhat * (gh * xhat).mean(-1, keepdim=True))
        return gx.reshape(b, c, -1).mul(weight[:, None]).reshape(x.shape), g_weight, g_bias, None, None


class GroupNormAffine(nn.Module):
    def __init__(self, groups, channels, eps=1e-5):
        super().__init__()
        assert channels % groups == 0
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        assert x.is_floating_point() and x.shape[1] == self.weight.numel()
        return _GroupNorm.apply(x, self.weight, self.bias, self.groups, self.eps)
