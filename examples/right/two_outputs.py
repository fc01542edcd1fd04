"""Several inputs and several outputs."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class SquaredRadiusAndProduct(Function):
    """u = x² + y², v = xy.

    ∂L/∂x = 2x·∂L/∂u + y·∂L/∂v and ∂L/∂y = 2y·∂L/∂u + x·∂L/∂v.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, y)
        return x * x + y * y, x * y

    @staticmethod
    def backward(ctx: Any, grad_u: Tensor, grad_v: Tensor) -> tuple[Tensor, Tensor]:
        # backward takes a gradient for each output and returns one for each input; an output
        # that the loss does not use arrives as zeros.
        x, y = ctx.saved_tensors
        return 2 * x * grad_u + y * grad_v, 2 * y * grad_u + x * grad_v
