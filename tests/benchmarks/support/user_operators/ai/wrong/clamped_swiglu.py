import torch
from torch import Tensor
from typing import Optional, Tuple


class ClampedSwiGLU(torch.autograd.Function):
    """Interleaved gate/linear activation with clamping, (..., 2D) -> (..., D)."""

    @staticmethod
    def forward(ctx, x: Tensor, alpha: float = 1.0, limit: Optional[float] = None) -> Tensor:
        if x.shape[-1] % 2:
            raise ValueError("last dimension must be even")
        gate, lin = x[..., ::2], x[..., 1::2]
        if limit is not None:
            gate = gate.clamp(max=limit)
            lin = lin.clamp(min=-limit, max=limit)
        ctx.save_for_backward(x)
        ctx.alpha, ctx.limit = alpha, limit
        return gate * torch.sigmoid(alpha * gate) * (lin + 1)

    @staticmethod
    def backward(ctx, dy: Tensor) -> Tuple[Optional[Tensor], ...]:
        (x,) = ctx.saved_tensors
        alpha, limit = ctx.alpha, ctx.limit
        gate, lin = x[..., ::2], x[..., 1::2]
        gate_ok = lin_ok = 1.0
        if limit is not None:
            gate_ok = (gate <= limit).to(x.dtype)
            lin_ok = (lin.abs() <= limit).to(x.dtype)
            gate = gate.clamp(max=limit)
            lin = lin.clamp(min=-limit, max=limit)
        sig = torch.sigmoid(alpha * gate)
        d_gate = dy * (lin + 1) * sig * (1 + gate * (1 - sig)) * gate_ok
        d_lin = dy * gate * sig * lin_ok
        dx = torch.stack([d_gate, d_lin], dim=-1).flatten(-2)
        return dx, None, None
