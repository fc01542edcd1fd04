from typing import Optional

import torch
from torch import Tensor


class TurnoverCost(torch.autograd.Function):
    """Proportional transaction cost of a sequence of portfolios.

    Args:
        weights: (T, A) holdings per period.
        rate: (A,) cost per unit traded.
        initial: optional (A,) holdings before the first period; without them
            entering the first portfolio is free.

    Where nothing is traded the subgradient is zero.
    """

    @staticmethod
    def forward(ctx, weights: Tensor, rate: Tensor, initial: Optional[Tensor] = None) -> Tensor:
        start = weights[:1] if initial is None else initial.unsqueeze(0)
        trades = weights - torch.cat([start, weights[:-1]])
        ctx.has_initial = initial is not None
        ctx.save_for_backward(trades, rate)
        return (rate * trades.abs()).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        trades, rate = ctx.saved_tensors
        d_trade = grad_output * rate * trades.sign()
        grad_weights = d_trade.clone()
        grad_weights[:-1] -= d_trade[1:]
        grad_rate = grad_output * trades[1:].abs().sum(0)
        grad_initial = -d_trade[0] if ctx.has_initial else None
        return grad_weights, grad_rate, grad_initial
