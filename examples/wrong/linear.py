"""Matrix products with a gradient forgotten or turned around."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class OneGradientTooFew(Function):
    """Y = X Wᵀ + b, whose backward forgets b: three inputs, two gradients."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(input, weight)
        return input @ weight.mT + bias

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        input, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.mT @ input  # <- GL101


class SquareWeight(Function):
    """Y = X W with a square W; ∂L/∂W is Xᵀ G, but backward returns its transpose Gᵀ X.

    With a square weight the shapes agree, so nothing but the numbers shows it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        if weight.shape[0] != weight.shape[1]:
            raise ValueError(f"weight must be square, got {tuple(weight.shape)}")
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, grad_output.mT @ x  # <- GL401
