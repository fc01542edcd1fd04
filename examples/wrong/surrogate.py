"""Straight-through gradients: one declared but not returned, one returned but not warranted."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function


class SignWithoutGradient(Function):
    """y = sign(x), declared to pass the gradient straight through; backward returns zeros.

    Zero is the true derivative, so finite differences alone would call this right.
    """

    surrogate: ClassVar[dict[str, str]] = {"x": "grad_output"}

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return torch.zeros_like(grad_output)  # <- GL401


class GumbelSoftmax(Function):
    """y = softmax((logits + n) / τ) along the last axis, with Gumbel noise n.

    The straight-through gradient belongs to the variant whose output is the one-hot sample.
    This one returns the soft sample, whose gradient is y·(G − Σ y·G) / τ.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, tau: float = 1.0) -> Tensor:
        noise = -torch.empty_like(logits).exponential_().log()
        return torch.softmax((logits + noise) / tau, dim=-1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None  # <- GL401
