"""Quantize and dequantize: rounding has no useful gradient, so a surrogate is declared."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function


class FakeQuantize(Function):
    """y = s·min(max(round(x / s), low), high) for a step s, low and high.

    Gradient of the surrogate: ∂L/∂x = ∂L/∂y where x / s lies in [low, high], else 0.
    """

    surrogate: ClassVar[dict[str, str]] = {
        "x": "grad_output * (x / scale >= low) * (x / scale <= high)"
    }

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float = 0.1, low: int = -8, high: int = 7) -> Tensor:
        steps = x / scale
        # The mask is made before rounding, so that values which only rounding brings into the
        # range get no gradient.
        ctx.save_for_backward((steps >= low) & (steps <= high))
        return scale * torch.round(steps).clamp(low, high)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        (inside,) = ctx.saved_tensors
        return grad_output * inside, None, None, None
