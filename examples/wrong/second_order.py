"""First derivatives right, second derivatives silently gone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class SquareNoGrad(Function):
    """y = x²; backward runs under no_grad, so that a gradient penalty on y sees a constant.

    Leave no_grad out, or say once_differentiable: then a second derivative raises an error.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            return 2 * x * grad_output  # <- GL502
