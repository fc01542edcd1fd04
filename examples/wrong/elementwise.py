"""Elementwise operators with a slip in the formula."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class SwappedGradients(Function):
    """z = x²·y; ∂L/∂x is 2xy·G and ∂L/∂y is x²·G, but they are returned in the other order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return x * x * grad_output, 2 * x * y * grad_output  # <- GL401


class FactorMissing(Function):
    """y = x²; ∂L/∂x is 2x·G, but the 2 is missing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x * grad_output  # <- GL401


class IgnoresGradOutput(Function):
    """y = eˣ; ∂L/∂x is y·G, but backward returns the derivative y alone.

    With a loss that is the plain sum of y, G is one everywhere and the slip can't be seen.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y  # <- GL401
