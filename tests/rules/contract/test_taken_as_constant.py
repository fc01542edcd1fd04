"""GL103 where inputs are inferred: tensors without a gradient are taken for constants, aloud."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint


class Product(Function):
    """Backward forgets ``y``, or means it to be a constant: who knows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        _, y = ctx.saved_tensors
        return grad_output * y, None


class Masked(Function):
    """By its name a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


class Gate(Function):
    """Nothing depends smoothly on ``y``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * (y > 0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0), None


class Refuses(Function):
    """Says that there is no gradient for ``y``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        if ctx.needs_input_grad[1]:
            raise NotImplementedError("y is a constant")
        (y,) = ctx.saved_tensors
        return grad_output * y, None


class OnDemand(Function):
    """Computes the gradient for ``y`` where it is needed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return grad_output * y, None
        return grad_output * y, grad_output * x


def notes(op: Any, inputs: Any = None) -> list[tuple[str, str, str | None]]:
    report = gradlint.check(op, inputs, select=["GL103"], seed=0)
    assert report.ok, report
    return [
        (found.code, found.severity, found.input)
        for target in report.targets
        for found in target.findings
    ]


def test_a_tensor_taken_for_a_constant_is_told() -> None:
    assert notes(Product) == [("GL103", "info", "y")]


@pytest.mark.parametrize("op", [Masked, Gate, Refuses, OnDemand])
def test_constants_and_gradients_on_demand_are_not(op: Any) -> None:
    assert notes(op) == []


def test_nothing_is_told_of_inputs_that_were_given() -> None:
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.5, 3.0], dtype=torch.float64)
    assert notes(Product, (x, y)) == []
