"""Backwards that work for ordinary incoming gradients only."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class SineAndSquare(Function):
    """y = (sin x, x²); a loss that uses one output alone raises.

    After set_materialize_grads(False), None arrives for an output without gradient. Test for it,
    or leave that call out: then zeros arrive.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.square()

    @staticmethod
    def backward(ctx: Any, grad_sine: Tensor, grad_square: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_sine * x.cos() + grad_square * 2 * x  # <- GL405


class ClippedExponential(Function):
    """y = exp x, whose gradient is clipped: right until the loss is scaled up, as GradScaler does.

    Clipping belongs behind backward: torch.nn.utils.clip_grad_value_.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return (grad_output * y).clamp(-1e4, 1e4)  # <- GL401
