"""Values that are positive only because backward is not finite at others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.model.report import TargetReport
from gradlint.targets.build import from_object

KNEE = 0.2


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL3", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Gamma(Function):
    """A line below the knee, a power above it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        slope = KNEE**-0.6
        return torch.where(x <= KNEE, slope * x, x.clamp(min=KNEE) ** 0.4)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        above = 0.4 * x.clamp(min=KNEE) ** -0.6
        return g * torch.where(x <= KNEE, torch.full_like(x, KNEE**-0.6), above)


class GammaTimesNaN(Gamma):
    """The branch that is not taken is NaN below zero, and NaN times zero is NaN."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dark = (x <= KNEE).to(x.dtype)
        return g * (dark * KNEE**-0.6 + (1 - dark) * 0.4 * x**-0.6)


class Root(Function):
    """Forward itself is not finite at negative numbers."""

    @staticmethod
    def forward(ctx, x):
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (2 * y)


class SquareByLogarithms(Function):
    """The square of positive numbers, by a formula that is theirs alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * torch.exp(torch.log(x))


def test_a_gradient_that_is_finite_for_positive_numbers_alone_is_told():
    report = check(GammaTimesNaN)
    (finding,) = [item for item in report.findings if item.severity != "info"]
    assert (finding.code, finding.severity, finding.input) == ("GL302", "warning", "x")
    assert finding.sample == "where values have both signs"
    assert "NaN" in finding.message


@pytest.mark.parametrize("function", [Gamma, Root, SquareByLogarithms])
def test_what_is_right_or_documented_for_positive_numbers_passes(function):
    assert [item.code for item in check(function).findings if item.severity != "info"] == []


def test_what_is_documented_as_positive_is_not_tried_at_other_values():
    narrowed = {f: infer(from_object(f))[0].narrowed for f in (GammaTimesNaN, Gamma, Root)}
    assert narrowed == {GammaTimesNaN: ("x",), Gamma: (), Root: ()}
    assert infer(from_object(SquareByLogarithms))[0].narrowed == ()


class Limb(Function):
    """Zero beyond one."""

    @staticmethod
    def forward(ctx, r, alpha):
        ctx.save_for_backward(r, alpha)
        on = r.abs() < 1
        mu = torch.sqrt(torch.where(on, 1 - r * r, torch.ones_like(r)))
        return torch.where(on, mu**alpha, torch.zeros_like(r))

    @staticmethod
    def backward(ctx, g):
        r, alpha = ctx.saved_tensors
        on = r.abs() < 1
        mu = torch.sqrt(torch.where(on, 1 - r * r, torch.ones_like(r)))
        g = g * on
        return -g * alpha * mu ** (alpha - 2) * r, (g * mu**alpha * torch.log(mu)).sum()


class LimbTimesNaN(Limb):
    """The root of a negative number beyond one, and NaN times zero is NaN."""

    @staticmethod
    def backward(ctx, g):
        r, alpha = ctx.saved_tensors
        mu = torch.sqrt(1 - r * r)
        g = g * (r.abs() < 1)
        return -g * alpha * mu ** (alpha - 2) * r, (g * mu**alpha * torch.log(mu)).sum()


def test_a_gradient_that_is_finite_below_one_alone_is_told():
    findings = [item for item in check(LimbTimesNaN).findings if item.severity != "info"]
    assert {(item.code, item.input) for item in findings} == {("GL302", "r"), ("GL302", "alpha")}
    assert {item.sample for item in findings} == {"where `r` goes beyond 1"}
    assert [item.code for item in check(Limb).findings if item.severity != "info"] == []
