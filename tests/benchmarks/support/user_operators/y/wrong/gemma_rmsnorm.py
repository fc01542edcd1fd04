import torch
from torch import nn


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.eps = eps
        ctx.save_for_backward(x, weight)
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        return x * rstd * (1.0 + weight)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        xhat = x * rstd
        wdy = dy * weight
        dx = rstd * (wdy - xhat * (wdy * xhat).mean(-1, keepdim=True))
        dw = (dy * xhat).reshape(-1, x.shape[-1]).sum(0)
        return dx, dw, None


class GemmaRMSNorm(nn.Module):
    """RMSNorm whose weight is stored as the offset from one."""

    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return _RMSNorm.apply(x, self.weight, self.eps)
