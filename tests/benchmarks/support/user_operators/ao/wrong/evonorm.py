import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _EvoNormS0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, gamma, beta, layer):
        B, C, L = x.shape
        xg = x.reshape(B, layer.groups, -1)
        mean = xg.mean(-1, keepdim=True)
        std = (xg.var(-1, unbiased=False, keepdim=True) + layer.eps).sqrt()
        ctx.save_for_backward(x, v, gamma)
        ctx.layer = layer
        layer.stats = (mean, std)
        num = (x * torch.sigmoid(v[:, None] * x)).reshape(B, layer.groups, -1)
        return (num / std).view(B, C, L) * gamma[:, None] + beta[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, v, gamma = ctx.saved_tensors
        mean, std = ctx.layer.stats
        B, C, L = x.shape
        G = ctx.layer.groups
        s = torch.sigmoid(v[:, None] * x)
        num = (x * s).reshape(B, G, -1)
        dn = (dy * gamma[:, None]).reshape(B, G, -1)
        xg = x.reshape(B, G, -1)
        n = xg.shape[-1]

        dnum = (dn / std).view(B, C, L)
        dstd = -(dn * num).sum(-1, keepdim=True) / std ** 2
        dx = dnum * (s + x * v[:, None] * s * (1 - s))
        dx = dx + (dstd * (xg - mean) / (n * std)).view(B, C, L)
        dv = (dnum * x * x * s * (1 - s)).sum((0, 2))
        dgamma = (dy * (num / std).view(B, C, L)).sum((0, 2))
        return dx, dv, dgamma, dy.sum((0, 2)), None


class EvoNormS0(nn.Module):
    def __init__(self, channels, groups=2, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.v = nn.Parameter(torch.ones(channels))
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return _EvoNormS0.apply(x, self.v, self.gamma, self.beta, self)
