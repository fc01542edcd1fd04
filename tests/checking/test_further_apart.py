"""Further samples: tensors on one side of others, options beside optional tensors, rare names."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport
from gradlint.trace.comparisons import Comparisons


def op(forward: Any, backward: Any) -> type[Function]:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (Function,), {**members, "__doc__": forward.__doc__})


def check(thing: Any) -> TargetReport:
    return gradlint.check(thing, seed=0, order=1, select=["GL1", "GL2", "GL4"]).targets[0]


def red(report: TargetReport) -> list[tuple[str, str]]:
    return [(f.code, f.sample or "") for f in report.findings if f.severity != "info"]


def labels(report: TargetReport) -> dict[str, str]:
    return {item.label: item.verdict for item in report.tried}


# A tensor that passes another one it is compared with.


def rate(ctx, times, knots, rates):
    """times: (M,), knots: (K,) increasing, constant; rates: (K,). Flat beyond the knots."""
    t = times.clamp(knots[0], knots[-1])
    i = torch.searchsorted(knots, t).clamp(1, len(knots) - 1)
    slope = (rates[i] - rates[i - 1]) / (knots[i] - knots[i - 1])
    ctx.save_for_backward(times, knots, rates, i)
    return rates[i - 1] + slope * (t - knots[i - 1])


def rate_right(ctx, g, *, flat=True):
    times, knots, rates, i = ctx.saved_tensors
    t = times.clamp(knots[0], knots[-1])
    width = knots[i] - knots[i - 1]
    inside = (times > knots[0]) & (times < knots[-1]) if flat else torch.ones_like(t)
    w = g * (t - knots[i - 1]) / width
    of_rates = torch.zeros_like(rates).index_add(0, i, w).index_add(0, i - 1, g - w)
    return g * (rates[i] - rates[i - 1]) / width * inside, None, of_rates


def rate_wrong(ctx, g):
    return rate_right(ctx, g, flat=False)


def test_a_tensor_passes_the_bounds_that_other_tensors_are():
    where = "where `times` is 4 times as large"
    assert ("GL401", where) in red(check(op(rate, rate_wrong)))
    report = check(op(rate, rate_right))
    assert red(report) == []
    assert labels(report)[where] == "right"


def product(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def product_right(ctx, g):
    x, y = ctx.saved_tensors
    return g * y, g * x


def test_tensors_that_nothing_is_compared_with_stay():
    assert not any(
        "times as large" in one for one in labels(check(op(product, product_right))) if "`" in one
    )


@pytest.mark.parametrize(
    ("compare", "apart"),
    [
        (lambda x: x.clamp(x.min() - 1, x.max() + 1), True),
        (lambda x: torch.maximum(x, x - 1), True),
        (lambda x: x > x + 1, True),
        (lambda x: x.clamp(min=x.mean()), False),
        (lambda x: torch.minimum(x, x.flip(0)), False),
        (lambda x: x > 5.0, False),
    ],
)
def test_comparisons_with_tensors_are_seen(compare, apart):
    with Comparisons() as seen:
        compare(torch.arange(4.0))
    assert seen.apart is apart


# Options of a constructor beside an optional tensor.


class _Powers(Function):
    @staticmethod
    def forward(ctx, x, y, weight, power, share):
        ctx.save_for_backward(x - y, weight)
        ctx.power, ctx.share = power, share
        each = (x - y).abs() ** power
        return (each if weight is None else each * weight).sum()

    @staticmethod
    def backward(ctx, g):
        d, weight = ctx.saved_tensors
        each = g * ctx.power * d.abs() ** (ctx.power - 1) * d.sign()
        if weight is not None:
            each = each * weight * ctx.share
        return each, -each, None, None, None


class Powers(nn.Module):
    """x, y: (N, D); weight: optional tensor (N, D), a constant."""

    def __init__(self, power: float = 2.0):
        super().__init__()
        self.power = power

    def forward(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        return _Powers.apply(x, y, weight, self.power, 1.0)


class WrongPowers(Powers):
    def forward(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        return _Powers.apply(x, y, weight, self.power, 2.0 / self.power)


def test_a_fault_at_an_option_beside_an_optional_tensor_is_found():
    where = "with weight given, power=0.7 in the constructor"
    assert {label for _, label in red(check(WrongPowers()))} == {where}
    report = check(Powers())
    assert red(report) == []
    assert labels(report)[where] == "right"
    assert "weight given" in [item.label for item in report.samples]


# The third name and the fourth.


def folded(ctx, x, kind="sum"):
    """kind: "sum", "mean", "norm" or "peak"."""
    if kind not in ("sum", "mean", "norm", "peak"):
        raise ValueError(kind)
    ctx.save_for_backward(x)
    ctx.kind = kind
    if kind == "norm":
        return x.norm(dim=-1)
    if kind == "peak":
        return x.amax(-1)
    return x.sum(-1) if kind == "sum" else x.mean(-1)


def folded_right(ctx, g):
    (x,) = ctx.saved_tensors
    g = g.unsqueeze(-1)
    if ctx.kind == "norm":
        return g * x / x.norm(dim=-1, keepdim=True), None
    if ctx.kind == "peak":
        return g * (x == x.amax(-1, keepdim=True)), None
    return (g if ctx.kind == "sum" else g / x.shape[-1]).expand_as(x), None


def folded_wrong(ctx, g):
    of_x, _ = folded_right(ctx, g)
    return of_x * (2 if ctx.kind == "peak" else 1), None


def test_every_name_that_the_code_knows_is_tried():
    found = red(check(op(folded, folded_wrong)))
    assert {(code, "peak" in label) for code, label in found} == {("GL401", True)}
    assert red(check(op(folded, folded_right))) == []
