"""Vectors that documentation puts inside of a ball are not looked at outside of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint
from gradlint.model.report import Finding

Function = torch.autograd.Function


class ConformalFactor(Function):
    """2 / (1 - |x|²) of points x (N, d) inside the unit ball."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        factor = 2.0 / (1.0 - x.square().sum(-1).clamp(max=1.0 - 1e-5))
        ctx.save_for_backward(x, factor)
        return factor

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        x, factor = ctx.saved_tensors
        return (g * factor.square())[..., None] * x


class OutsideToo(ConformalFactor):
    """2 / (1 - |x|²) of points x (N, d), those outside the unit ball clamped to its edge."""


class OnItsEdge(ConformalFactor):
    """2 / (1 - |x|²) of x (N, d), which is clamped onto the unit ball."""


class HalfInside(ConformalFactor):
    """2 / (1 - |x|²) of points x (N, d) inside the unit ball; wrong near its edge."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        x, _ = ctx.saved_tensors
        near = x.square().sum(-1) > 0.3
        return ConformalFactor.backward(ctx, torch.where(near, 0.5 * g, g))


def points() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(4, 3, generator=generator, dtype=torch.float64) - 0.5
    return x.requires_grad_()


def findings(op: Any, inputs: Any) -> list[Finding]:
    found = gradlint.check(op, inputs, seed=1, order=1).findings
    return [item for item in found if item.severity != "info"]


@pytest.mark.parametrize("inputs", [None, [(points(),)]], ids=["inferred", "given"])
def test_points_stay_inside(inputs: Any) -> None:
    assert findings(ConformalFactor, inputs) == []


@pytest.mark.parametrize("inputs", [None, [(points(),)]], ids=["inferred", "given"])
@pytest.mark.parametrize("op", [OutsideToo, OnItsEdge, HalfInside])
def test_what_is_wrong_at_values_that_are_meant_is_found(op: Any, inputs: Any) -> None:
    assert {item.code for item in findings(op, inputs)} & {"GL401", "GL402"}
