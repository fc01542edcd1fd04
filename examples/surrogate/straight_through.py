"""Step functions, whose true gradient is zero: backward returns a surrogate, and declares it.

The declaration names an input and gives the gradient meant for it, in the inputs' names and
``grad_output``. What backward returns is then held against it exactly.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function


class SignStraightThrough(Function):
    """y = sign(x), with the gradient of y = x."""

    surrogate: ClassVar[dict[str, str]] = {"x": "grad_output"}

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output


class SignClipped(Function):
    """y = sign(x), with the gradient of y = min(max(x, −1), 1).

    No gradient pushes an x beyond ±1 further out, where it could not change its sign again.
    """

    surrogate: ClassVar[dict[str, str]] = {"x": "grad_output * (abs(x) <= 1)"}

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)
