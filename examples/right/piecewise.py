"""Piecewise linear operators: each has kinks, where any slope between the two sides is right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class ClippedRelu(Function):
    """y = min(max(x, 0), c); ∂L/∂x = ∂L/∂y where 0 < x < c, else 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ceiling: float = 1.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.ceiling = ceiling
        return x.clamp(0, ceiling)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * ((x > 0) & (x < ctx.ceiling)), None


class SoftThreshold(Function):
    """y = sign(x)·max(|x| − λ, 0); ∂L/∂x = ∂L/∂y where |x| > λ, else 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: float = 0.5) -> Tensor:
        ctx.save_for_backward(x)
        ctx.threshold = threshold
        return torch.sign(x) * torch.relu(x.abs() - threshold)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() > ctx.threshold), None


class AddRelu(Function):
    """z = max(x + y, 0); ∂L/∂x = ∂L/∂y = ∂L/∂z where x + y > 0, else 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        total = x + y
        # One byte an element, against sixteen for x and y in float64.
        mask = total > 0
        ctx.save_for_backward(mask)
        return total * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        (mask,) = ctx.saved_tensors
        grad = grad_output * mask
        return grad, grad
