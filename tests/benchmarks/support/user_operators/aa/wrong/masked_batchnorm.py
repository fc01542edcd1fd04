from typing import Optional

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _MaskedNorm(Function):
    @staticmethod
    def forward(ctx, x: Tensor, mask: Tensor, eps: float):
        m = mask.unsqueeze(-1).to(x.dtype)
        n = m.sum().clamp(min=1)
        mean = (x * m).sum((0, 1)) / n
        var = ((x - mean).square() * m).sum((0, 1)) / n
        invstd = torch.rsqrt(var + eps)
        xhat = (x - mean) * invstd * m
        ctx.save_for_backward(xhat, invstd, m, n)
        ctx.mark_non_differentiable(mean, var)
        return xhat, mean, var

    @staticmethod
    @once_differentiable
    def backward(ctx, g, _m, _v):
        xhat, invstd, m, n = ctx.saved_tensors
        g = g * m
        g_mean = g.sum((0, 1)) / n
        g_corr = (g * xhat).mean((0, 1))
        return invstd * m * (g - g_mean - xhat * g_corr), None, None


class MaskedBatchNorm(nn.Module):
    """Batch norm over padded point sets: x (B, N, C), mask (B, N) True where a point is real.

    Padded points come out as zero and take no part in the statistics.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.linspace(1.0, 2.0, num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        if self.training:
            xhat, mean, var = _MaskedNorm.apply(x, mask, self.eps)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        else:
            xhat = (x - self.running_mean) * torch.rsqrt(self.running_var + self.eps)
        out = xhat * self.weight + self.bias
        return out.masked_fill(~mask.unsqueeze(-1), 0.0)
