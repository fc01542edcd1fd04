"""Backward right, forward mode wrong: training works, Hessians do not."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class ScaledSine(Function):
    """y = a·sin x, whose jvp forgets that a may move too: dy = a·cos x·dx + sin x·da."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor) -> Tensor:
        ctx.save_for_backward(x, a)
        ctx.save_for_forward(x, a)
        return a * x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, a = ctx.saved_tensors
        return grad_output * a * x.cos(), grad_output * x.sin()

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor, a_tangent: Tensor) -> Tensor:  # <- GL403
        x, a = ctx.saved_tensors
        return a * x.cos() * x_tangent
