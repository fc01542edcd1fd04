import torch
import torch.nn as nn


class _RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return x * inv * (1.0 + weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        n = x * inv
        gw = (grad * n).reshape(-1, x.shape[-1]).sum(0)
        gn = grad * (1.0 + weight)
        gx = inv * (gn - n * (gn * n).mean(-1, keepdim=True))
        return gx, gw, None


class GemmaRMSNorm(nn.Module):
    """RMSNorm whose weight is stored as the difference from one."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return _RMS.apply(x, self.weight, self.eps)
