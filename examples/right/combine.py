"""Operators that combine tensors: options that change the formula, weights, in-place work."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class ScaledAdd(Function):
    """z = αx + y, or max(αx + y, 0) where ``relu`` is set.

    With G = ∂L/∂z, set to zero where the relu cuts: ∂L/∂x = α·G and ∂L/∂y = G.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, alpha: float = 0.5, relu: bool = False) -> Tensor:
        z = alpha * x + y
        if relu:
            z = torch.relu(z)
            ctx.save_for_backward(z)
        ctx.alpha, ctx.relu = alpha, relu
        return z

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None, None]:
        if ctx.relu:
            (z,) = ctx.saved_tensors
            grad_output = grad_output * (z > 0)
        return ctx.alpha * grad_output, grad_output, None, None


class WeightedSum(Function):
    """s = Σᵢ wᵢ xᵢ, a tensor without axes; ∂L/∂x = w·∂L/∂s and ∂L/∂w = x·∂L/∂s."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return (x * weight).sum()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        # grad_output has no axes: the product with w or x expands it to their shape.
        x, weight = ctx.saved_tensors
        return weight * grad_output, x * grad_output


class ScaleInPlace(Function):
    """x ← cx in x's own memory, for a number c; ∂L/∂x = c·∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        x.mul_(factor)
        # Without mark_dirty autograd would not know that x changed, and operators that saved
        # the old x would compute their gradients from the new one.
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None
