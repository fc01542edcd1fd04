import torch
from torch import nn


class _RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        inv = torch.rsqrt(x.square().mean(-1, keepdim=True) + ctx.eps)
        n = x * inv
        gn = g * weight
        gx = inv * (gn - n * (gn * n).mean(-1, keepdim=True))
        gw = (g * n).flatten(0, -2).sum(0) if x.dim() > 1 else g * n
        return gx, gw, None


class GemmaNorm(nn.Module):
    """RMS norm whose weight is an offset from one."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return _RMS.apply(x, self.weight, self.eps)
