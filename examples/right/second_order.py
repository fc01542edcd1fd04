"""Second derivatives: given by hand, or openly refused. Never silently wrong."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SquareTwice(Function):
    """y = x² with double backward; ∂L/∂x = 2x·∂L/∂y, made by :class:`SquareTwiceBackward`.

    The pattern for kernels: a gradient that a kernel computes is not differentiable by itself,
    so backward calls a Function of its own.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return SquareTwiceBackward.apply(grad_output, x)


class SquareTwiceBackward(Function):
    """h = 2x·g; ∂L/∂g = 2x·∂L/∂h and ∂L/∂x = 2g·∂L/∂h."""

    @staticmethod
    def forward(ctx: Any, grad_output: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(grad_output, x)
        return 2 * x * grad_output

    @staticmethod
    def backward(ctx: Any, grad_grad: Tensor) -> tuple[Tensor, Tensor]:
        grad_output, x = ctx.saved_tensors
        return 2 * x * grad_grad, 2 * grad_output * grad_grad


class SquareOnce(Function):
    """y = x², first derivatives only; ∂L/∂x = 2x·∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        # once_differentiable turns a second derivative into an error. Without it, work that
        # autograd can't see would make second derivatives silently zero.
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output
