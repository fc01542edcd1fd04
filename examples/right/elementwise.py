"""Elementwise operators: one input, one output, each output element from one input element."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class Square(Function):
    """y = x²; ∂L/∂x = 2x·∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        # Written in differentiable operations on a saved input, so autograd can
        # differentiate it once more: second derivatives come for free.
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Exp(Function):
    """y = eˣ; ∂L/∂x = y·∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.exp(x)
        # An output may be saved as well: autograd knows how it came about.
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * grad_output


class ScaledSigmoid(Function):
    """y = σ(kx) for a number k; ∂L/∂x = k·y·(1 − y)·∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float = 2.0) -> Tensor:
        y = torch.sigmoid(scale * x)
        # The derivative is a polynomial in y: saving y alone halves the memory and spares
        # a second exponential.
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        return ctx.scale * y * (1 - y) * grad_output, None


class MultiplyByConstant(Function):
    """y = cx for a number c; ∂L/∂x = c·∂L/∂y.

    In the newer style: ``forward`` without ``ctx``, and ``setup_context`` beside it, which is
    what ``torch.func`` asks for.
    """

    @staticmethod
    def forward(x: Tensor, constant: float) -> Tensor:
        return x * constant

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.constant = inputs

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        # One gradient for each argument of forward; a number has none.
        return grad_output * ctx.constant, None
