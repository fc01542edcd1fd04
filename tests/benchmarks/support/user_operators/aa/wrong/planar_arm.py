from typing import Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _rev_cumsum(x: Tensor) -> Tensor:
    return x.flip(1).cumsum(1).flip(1)


class PlanarArmFK(torch.autograd.Function):
    """Joint positions of a planar serial arm.

    Args:
        q: relative joint angles (B, n)
        length: link lengths (n,)
        limits: (n, 2) lower and upper joint limits or None; angles beyond are cut off
    Returns:
        (B, n, 2) end points of the links
    """

    @staticmethod
    def forward(ctx, q: Tensor, length: Tensor, limits: Optional[Tensor] = None) -> Tensor:
        free = torch.ones_like(q, dtype=torch.bool)
        if limits is not None:
            lo, hi = limits.unbind(1)
            free = (q >= lo) & (q <= hi)
            q = torch.minimum(torch.maximum(q, lo), hi)
        phi = q.cumsum(1)
        u = torch.stack([phi.cos(), phi.sin()], -1)
        ctx.save_for_backward(u, length, free)
        return (u * length[:, None]).cumsum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        u, length, free = ctx.saved_tensors
        tip = _rev_cumsum(g)
        g_len = (tip * u).sum((0, 2))
        g_phi = length * (u[..., 0] * tip[..., 1] - u[..., 1] * tip[..., 0])
        return _rev_cumsum(g_phi * free), g_len, None
