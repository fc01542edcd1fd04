"""Operators of a small project, each with a backward of its own."""

from __future__ import annotations

import torch
from torch import Tensor


class Swish(torch.autograd.Function):
    """x·sigmoid(x)."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad_output * (gate + x * gate * (1 - gate))


class ScaledSum(torch.autograd.Function):
    """Σ x·w over the last axis."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return (x * weight).sum(-1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        grad = grad_output.unsqueeze(-1)
        return grad * weight, (grad * x).sum_to_size(weight.shape)

    @staticmethod
    def sample_inputs() -> list[tuple[Tensor, Tensor]]:
        """Arguments to check it with."""
        generator = torch.Generator().manual_seed(0)
        draw = {"generator": generator, "dtype": torch.float64}
        return [(torch.randn(3, 4, **draw), torch.randn(4, **draw))]
