"""A linear layer: an optional input, only the gradients asked for, and a module around it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class Linear(Function):
    """Y = X Wᵀ + b, with X (N, in), W (out, in), b (out) or None.

    ∂L/∂X = G W, ∂L/∂W = Gᵀ X and ∂L/∂b = Σₙ Gₙ, where G = ∂L/∂Y.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        # None may stand among the saved tensors.
        ctx.save_for_backward(input, weight, bias)
        output = input @ weight.mT
        if bias is not None:
            output = output + bias
        return output

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        # needs_input_grad has a flag for each argument that apply was given, in the same order.
        # With a frozen weight, its matrix product is not worth its time.
        if ctx.needs_input_grad[0]:
            grad_input = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.mT @ input
        if bias is not None and ctx.needs_input_grad[2]:
            # The bias was broadcast along the batch, so its gradient is summed along it.
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class LinearLayer(torch.nn.Module):
    """:class:`Linear` with parameters: gradients of the parameters and of the input are checked."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = torch.nn.Parameter(
            torch.empty(out_features, in_features).uniform_(-bound, bound)
        )
        self.bias = (
            torch.nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if bias else None
        )

    def forward(self, input: Tensor) -> Tensor:
        return Linear.apply(input, self.weight, self.bias)
