"""Empirical expected shortfall (CVaR)."""
import math
from typing import Tuple

import torch
from torch import Tensor


class ExpectedShortfall(torch.autograd.Function):
    """Mean loss over the worst scenarios.

    The worst k = ceil(level * N) outcomes of the axis ``dim`` are averaged.

    Args:
        pnl: profit and loss, any shape, N scenarios along ``dim``
        level: tail probability in (0, 1]
        dim: the axis of scenarios
    Returns:
        shortfall: pnl's shape without ``dim`` (positive for losses)
        tail: indices of the tail scenarios, k along ``dim`` (not differentiable)
    """

    @staticmethod
    def forward(ctx, pnl: Tensor, level: float = 0.05, dim: int = -1) -> Tuple[Tensor, Tensor]:
        if not 0 < level <= 1:
            raise ValueError("level must be in (0, 1]")
        n = pnl.size(dim)
        k = max(1, min(n, math.ceil(level * n)))
        worst, tail = pnl.topk(k, dim=dim, largest=False)
        ctx.save_for_backward(tail)
        ctx.mark_non_differentiable(tail)
        ctx.shape, ctx.dim, ctx.level = pnl.shape, dim, level
        return -worst.mean(dim), tail

    @staticmethod
    def backward(ctx, grad: Tensor, _):
        tail, = ctx.saved_tensors
        n = tail.size(ctx.dim)
        share = (-grad / n).unsqueeze(ctx.dim).expand(tail.shape)
        zeros = torch.zeros(ctx.shape, dtype=grad.dtype, device=grad.device)
        return zeros.scatter(ctx.dim, tail, share), None, None
