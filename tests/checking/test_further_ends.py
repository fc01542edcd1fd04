"""Ends of a range that documentation includes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL3", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Survival(Function):
    """Chances to survive all years; q (..., n) yearly death probabilities in [0, 1]."""

    @staticmethod
    def forward(ctx, q):
        ctx.save_for_backward(q)
        return (1 - q).prod(-1)

    @staticmethod
    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        p = 1 - q
        ones = torch.ones_like(p[..., :1])
        before = torch.cat([ones, p[..., :-1]], -1).cumprod(-1)
        after = torch.cat([p[..., 1:], ones], -1).flip(-1).cumprod(-1).flip(-1)
        return -g.unsqueeze(-1) * before * after


class SurvivalByDivision(Survival):
    """Chances to survive all years; q (..., n) yearly death probabilities in [0, 1]."""

    @staticmethod
    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        p = 1 - q
        return -(g * p.prod(-1)).unsqueeze(-1) / p


class SurvivalInside(SurvivalByDivision):
    """Chances to survive all years; q (..., n) yearly death probabilities in (0, 1)."""


class Growth(Function):
    """Powers of times t >= 0 (N,) with an exponent n >= 1, a scalar."""

    @staticmethod
    def forward(ctx, t, n):
        ctx.save_for_backward(t, n)
        return t**n

    @staticmethod
    def backward(ctx, g):
        t, n = ctx.saved_tensors
        log = torch.log(torch.where(t > 0, t, torch.ones_like(t)))
        return g * n * t ** (n - 1), (g * t**n * log).sum()


class GrowthWithoutItsStart(Growth):
    """Powers of times t >= 0 (N,) with an exponent n >= 1, a scalar."""

    @staticmethod
    def backward(ctx, g):
        t, n = ctx.saved_tensors
        return g * n * t ** (n - 1), (g * t**n * torch.log(t)).sum()


def test_both_ends_of_a_closed_interval_are_tried():
    (finding,) = [f for f in check(SurvivalByDivision).findings if f.severity != "info"]
    assert (finding.code, finding.severity, finding.input) == ("GL302", "warning", "q")
    assert finding.sample == "where an element of `q` is 1"
    assert check(Survival).verdict == "pass"


def test_ends_that_documentation_leaves_out_are_not():
    assert [f.code for f in check(SurvivalInside).findings if f.severity != "info"] == []


def test_zero_is_tried_where_documentation_includes_it():
    findings = [f for f in check(GrowthWithoutItsStart).findings if f.severity != "info"]
    assert {(item.code, item.input) for item in findings} == {("GL302", "n")}
    assert "where an element of `t` is 0" in {item.sample for item in findings}
    assert [f.code for f in check(Growth).findings if f.severity != "info"] == []


class Fading(Function):
    """x + exp(-400 x).

    x: (N,), a probability in (0, 1)
    """

    forgets = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + torch.exp(-400 * x)

    @classmethod
    def backward(cls, ctx, g):
        (x,) = ctx.saved_tensors
        return g if cls.forgets else g * (1 - 400 * torch.exp(-400 * x))


class Forgetful(Fading):
    """x + exp(-400 x).

    x: (N,), a probability in (0, 1)
    """

    forgets = True


class Closed(Forgetful):
    """x + exp(-400 x).

    x: (N,), a probability in [0, 1]
    """


@pytest.mark.parametrize(("op", "seen"), [(Fading, "right"), (Forgetful, "wrong"), (Closed, "")])
def test_near_the_ends_of_an_open_interval(op: type[Function], seen: str) -> None:
    [report] = gradlint.check(op, seed=0, order=1, select=["GL401"]).targets
    label = "where `x` is near 0 and 1"
    assert {item.label: item.verdict for item in report.tried}.get(label, "") == seen
