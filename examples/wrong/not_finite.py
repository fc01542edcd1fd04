"""Backward formulas that divide zero by zero where the function itself is smooth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class Sinc(Function):
    """y = sin(x) / x, and 1 at x = 0, where the derivative is 0.

    Forward takes care of x = 0, backward computes (x·cos x − sin x) / x² and forgets it: one
    exact zero in a batch turns every later weight into NaN.
    """

    @staticmethod
    def sample_inputs() -> tuple[Tensor]:
        return (torch.tensor([-1.5, -0.5, 0.0, 0.5, 1.5]),)

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x * torch.cos(x) - torch.sin(x)) / x**2  # <- GL302


class ScaledSigmoid(Function):
    """y = kσ(x) for a number k; ∂L/∂x = y·(1 − y / k)·G.

    The formula saves only the output, at a price: it divides by k. A layer whose scale starts
    at zero has the gradient zero, and gets NaN.
    """

    @staticmethod
    def sample_inputs() -> tuple[Tensor, float]:
        return torch.tensor([-1.0, 0.5, 2.0]), 0.0

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        y = scale * torch.sigmoid(x)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y / ctx.scale), None  # <- GL302
