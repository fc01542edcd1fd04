"""Faults that show only where a number has the other sign."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._signs import of_either_sign
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Lagged(Function):
    @staticmethod
    def forward(ctx, x, lag=1):
        ctx.lag = lag
        return x - torch.roll(x, lag, -1)

    @staticmethod
    def backward(ctx, g):
        return g - torch.roll(g, -ctx.lag, -1), None


class LaggedForward(Lagged):
    @staticmethod
    def backward(ctx, g):
        return g - torch.roll(g, -abs(ctx.lag), -1), None


class Upwind(Function):
    """A step along ``speed``, whose sign says from which side."""

    @staticmethod
    def forward(ctx, u, speed=0.4):
        ctx.speed = speed
        if speed > 0:
            return u - speed * (u - u.roll(1, -1))
        return u - speed * (u.roll(-1, -1) - u)

    @staticmethod
    def backward(ctx, g):
        if ctx.speed > 0:
            return g - ctx.speed * (g - g.roll(-1, -1)), None
        return g - ctx.speed * (g.roll(1, -1) - g), None


class UpwindFromOneSide(Upwind):
    @staticmethod
    def backward(ctx, g):
        return g - ctx.speed * (g - g.roll(-1, -1)), None


class Smoothed(Function):
    """Nothing is smoothed at zero, and a share below zero has no meaning."""

    @staticmethod
    def forward(ctx, x, share=0.1):
        ctx.share = share
        if share > 0:
            x = (1 - share) * x + share * x.mean(-1, keepdim=True)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return (1 - ctx.share) * g + ctx.share * g.mean(-1, keepdim=True), None


class Refusing(Function):
    @staticmethod
    def forward(ctx, x, power=2.0):
        if power < 0:
            raise ValueError(f"power {power} is below zero")
        ctx.save_for_backward(x)
        ctx.power = power
        return x.abs() ** power

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x.sign() * x.abs() ** (ctx.power - 1), None


@pytest.mark.parametrize(
    ("wrong", "where"),
    [(LaggedForward, "with lag=-1"), (UpwindFromOneSide, "with speed=-0.4")],
)
def test_a_fault_at_the_other_sign_is_found(wrong, where):
    found = [item for item in check(wrong).findings if item.code == "GL401"]
    assert [(item.severity, item.sample) for item in found] == [("error", where)]


@pytest.mark.parametrize("right", [Lagged, Upwind, Smoothed, Refusing])
def test_right_operators_pass(right):
    report = check(right)
    assert report.verdict == "pass"
    assert report.findings == []


def test_a_number_without_a_second_sign_keeps_it():
    for right in (Smoothed, Refusing):
        assert not any("=-" in item.label for item in check(right).tried)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("y = x.roll(k, 0)", {"k"}),
        ("y = torch.roll(x, (k, m), (0, 1))", {"k", "m"}),
        ("y = torch.roll(x, shifts=k)", {"k"}),
        ("y = x ** abs(k)", {"k"}),
        ("y = x * k if k >= 0 else x / k", {"k"}),
        ("if k < 0:\n    k += n", {"k"}),
        ("if self.k >= 0:\n    y = x\nelse:\n    y = self.k * x", {"self.k"}),
        ("def f():\n    if k > 0:\n        return x\n    return k * x", {"k"}),
        # Nothing is done with a number below zero, or the branch for it does not use it.
        ("if k < 0:\n    raise ValueError(f'{k}')", set()),
        ("if k < 0:\n    k = 0", set()),
        ("if k <= 0:\n    y = x", set()),
        ("if k > 0:\n    y = x\ny = k * x", set()),
        ("if k > 1:\n    y = x\nelse:\n    y = k * x", set()),
        ("if 0 < k < 1:\n    y = x\nelse:\n    y = k * x", set()),
        ("y = roll(x, k)", set()),
        ("y = torch.where(t < 0, t * 2, t)", {"t"}),
        ("y = torch.where(t > 0, t.log(), t * 2)", {"t"}),
        ("y = torch.where(t > 0, t.log(), 0.0)", set()),
        ("y = torch.where(t < 1, t * 2, t)", set()),
        ("y = where(t < 0, t * 2, t)", set()),
    ],
)
def test_what_code_says_of_signs(code, names):
    assert of_either_sign(ast.parse(code)) == names


class Divided(Function):
    """x over a root of a sum that grows with the size of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        return x * (bias + weight * x.abs() ** 1.5) ** -0.5

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, weight, bias = ctx.saved_tensors
        size = bias + weight * x.abs() ** 1.5
        of_size = -0.5 * g * x * size**-1.5
        of_x = g * size**-0.5 + of_size * weight * 1.5 * x.abs() ** 0.5 * x.sign()
        return of_x, of_size * x.abs() ** 1.5, of_size


class WithoutSign(Divided):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, weight, bias = ctx.saved_tensors
        of_x, of_weight, of_bias = Divided.backward(ctx, g)
        size = bias + weight * x.abs() ** 1.5
        missing = -0.5 * g * x * size**-1.5 * weight * 1.5 * x.abs() ** 0.5 * (1 - x.sign())
        return of_x + missing, of_weight, of_bias


def test_what_is_positive_for_the_sake_of_others_has_both_signs() -> None:
    def told(op: Any) -> dict[str, str]:
        report = gradlint.check(op, seed=0, order=1, select=["GL4"]).targets[0]
        return {item.label: item.verdict for item in report.tried if "both signs" in item.label}

    assert set(told(Divided).values()) == {"right"}
    assert "wrong" in told(WithoutSign).values()
