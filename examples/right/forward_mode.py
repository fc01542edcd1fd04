"""Forward mode: a jvp beside backward, for torch.func.jvp, jacfwd and Hessians."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class ScaledSine(Function):
    """y = a·sin x.

    Backward: ∂L/∂x = a·cos x·∂L/∂y and ∂L/∂a = sin x·∂L/∂y.
    Forward mode: dy = a·cos x·dx + sin x·da.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor) -> Tensor:
        ctx.save_for_backward(x, a)
        ctx.save_for_forward(x, a)
        return a * x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, a = ctx.saved_tensors
        return grad_output * a * x.cos(), grad_output * x.sin()

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor, a_tangent: Tensor) -> Tensor:
        # jvp takes a tangent for each input and returns one for each output.
        x, a = ctx.saved_tensors
        return a * x.cos() * x_tangent + x.sin() * a_tangent


class SineAndSquare(Function):
    """y = (sin x, x²), whose backward skips what the loss does not use."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.sin(), x.square()

    @staticmethod
    def backward(ctx: Any, grad_sine: Tensor | None, grad_square: Tensor | None) -> Tensor:
        # After set_materialize_grads(False), None arrives for an output without gradient.
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        if grad_sine is not None:
            grad = grad + grad_sine * x.cos()
        if grad_square is not None:
            grad = grad + grad_square * 2 * x
        return grad

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor) -> tuple[Tensor, Tensor]:
        (x,) = ctx.saved_tensors
        return x.cos() * x_tangent, 2 * x * x_tangent
