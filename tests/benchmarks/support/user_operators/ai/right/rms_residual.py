import torch
from torch import Tensor, nn
from typing import Optional, Tuple


class _AddRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, residual: Tensor, weight: Tensor, eps: float, unit_offset: bool):
        h = x + residual
        scale = 1 + weight if unit_offset else weight
        ctx.save_for_backward(x, residual, weight)
        ctx.eps, ctx.unit_offset = eps, unit_offset
        return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * scale, h

    @staticmethod
    def backward(ctx, dy: Tensor, dh: Tensor):
        x, residual, weight = ctx.saved_tensors
        h = x + residual
        rstd = torch.rsqrt(h.square().mean(-1, keepdim=True) + ctx.eps)
        xhat = h * rstd
        scale = 1 + weight if ctx.unit_offset else weight
        g = dy * scale
        dx = rstd * (g - xhat * (g * xhat).mean(-1, keepdim=True)) + dh
        dw = (dy * xhat).reshape(-1, weight.numel()).sum(0)
        return dx, dx, dw, None, None


class AddRMSNorm(nn.Module):
    """(normed, sum) = norm(x, residual); Gemma's 1 + weight with unit_offset."""

    def __init__(self, dim: int, eps: float = 1e-6, unit_offset: bool = False):
        super().__init__()
        self.eps = eps
        self.unit_offset = unit_offset
        self.weight = nn.Parameter(torch.zeros(dim) if unit_offset else torch.ones(dim))

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        if residual is None:
            residual = torch.zeros_like(x)
        return _AddRMSNorm.apply(x, residual, self.weight, self.eps, self.unit_offset)
