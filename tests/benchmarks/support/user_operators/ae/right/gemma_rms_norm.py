from typing import Optional

import torch
from torch.autograd.function import once_differentiable


class _OffsetRMSNorm(torch.autograd.Function):
    """y = x / rms(x) * (offset + weight), over the last axis."""

    @staticmethod
    def forward(ctx, x, weight, eps, offset):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        ctx.offset = offset
        y = x * rstd
        return y if weight is None else y * (offset + weight)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        x_hat = x * rstd
        dw = None
        if weight is not None and ctx.needs_input_grad[1]:
            dw = (dy * x_hat).reshape(-1, x.shape[-1]).sum(0)
        dx = None
        if ctx.needs_input_grad[0]:
            m = dy if weight is None else dy * (ctx.offset + weight)
            dx = rstd * (m - x_hat * (m * x_hat).mean(-1, keepdim=True))
        return dx, dw, None, None


def gemma_rms_norm(x: torch.Tensor, weight: Optional[torch.Tensor] = None, eps: float = 1e-6, offset: float = 1.0):
    return _OffsetRMSNorm.apply(x, weight, eps, offset)
