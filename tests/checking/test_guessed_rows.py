"""Guesses of which only the shapes are at fault: rows of a step, one threshold for each class."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    codes = ["GL004", "GL1", "GL2", "GL4", "GL706"]
    return gradlint.check(thing, seed=0, order=1, select=codes).targets[0]


def red(report: TargetReport) -> list[str]:
    return [item.code for item in report.findings if item.severity != "info"]


class Averaged(Function):
    """A moving average over steps, for several rows at once; ``a`` is one rate for each column."""

    @staticmethod
    def forward(ctx, x, a, h0=None):
        h = torch.zeros_like(x[0]) if h0 is None else h0
        before, steps = [], []
        for t in range(len(x)):
            before.append(h)
            h = a * h + (1 - a) * x[t]
            steps.append(h)
        ctx.save_for_backward(x, a, torch.stack(before))
        ctx.has0 = h0 is not None
        return torch.stack(steps)

    @staticmethod
    def backward(ctx, g):
        x, a, before = ctx.saved_tensors
        gx, ga, c = [], torch.zeros_like(a), torch.zeros_like(x[0])
        for t in reversed(range(len(x))):
            c = c + g[t]
            gx.append(c * (1 - a))
            ga += (c * (before[t] - x[t])).sum(0)
            c = c * a
        return torch.stack(gx[::-1]), ga, c if ctx.has0 else None


class AveragedWrong(Averaged):
    @staticmethod
    def backward(ctx, g):
        gx, ga, g0 = Averaged.backward(ctx, g)
        return gx, -ga, g0


class Ordinal(Function):
    @staticmethod
    def forward(ctx, e, c, y):
        ctx.save_for_backward(e, c, y)
        inf = c.new_full((1,), float("inf"))
        k = torch.cat([-inf, c, inf])
        return -torch.log(torch.sigmoid(k[y + 1] - e) - torch.sigmoid(k[y] - e)).sum()

    @staticmethod
    def backward(ctx, g):
        e, c, y = ctx.saved_tensors
        inf = c.new_full((1,), float("inf"))
        k = torch.cat([-inf, c, inf])
        u, v = torch.sigmoid(k[y + 1] - e), torch.sigmoid(k[y] - e)
        du, dv = g * u * (1 - u) / (u - v), g * v * (1 - v) / (u - v)
        gk = torch.zeros_like(k).index_add(0, y + 1, -du).index_add(0, y, dv)
        return du - dv, gk[1:-1], None


class OrdinalWrong(Ordinal):
    @staticmethod
    def backward(ctx, g):
        ge, gc, _ = Ordinal.backward(ctx, g)
        return ge, 2 * gc, None


def ordinal(e, c, y):
    return Ordinal.apply(e, c, y)


def ordinal_wrong(e, c, y):
    return OrdinalWrong.apply(e, c, y)


@pytest.mark.parametrize(("right", "wrong"), [(Averaged, AveragedWrong), (ordinal, ordinal_wrong)])
def test_only_the_shapes_are_at_fault(right: Any, wrong: Any) -> None:
    assert red(check(right)) == []
    assert "GL401" in red(check(wrong))


def test_several_rows_for_each_step() -> None:
    (sample, *_) = check(Averaged).samples
    shapes = {item.name: item.shape for item in sample.args if item.shape is not None}
    assert (len(shapes["x"]), len(shapes["a"])) == (3, 1)


class Hazard(Function):
    """Likelihood of events.

    eta: (N,) log rates
    log_t: (N,) logarithms of times
    event: (N,) long, 1 where it was seen
    """

    @staticmethod
    def forward(ctx, eta, log_t, event):
        ctx.save_for_backward(eta, log_t, event)
        return ((eta + log_t).exp() - event * (eta + log_t)).mean()

    @staticmethod
    def backward(ctx, g):
        eta, log_t, event = ctx.saved_tensors
        return g * ((eta + log_t).exp() - event) / len(eta), None, None


class HazardOfIntegers(Hazard):
    """Likelihood of events.

    eta: (N,) log rates
    log_t: (N,) logarithms of times
    event: (N,) long, 1 where it was seen
    """

    @staticmethod
    def backward(ctx, g):
        eta, log_t, event = ctx.saved_tensors
        return g * ((eta + log_t).exp().type_as(event) - event) / len(eta), None, None


def hazard(eta, duration, event):
    """eta (N,), duration (N,) positive, event (N,) long, 1 where it was seen."""
    return Hazard.apply(eta, duration.log(), event)


def hazard_of_integers(eta, duration, event):
    """eta (N,), duration (N,) positive, event (N,) long, 1 where it was seen."""
    return HazardOfIntegers.apply(eta, duration.log(), event)


def test_integers_that_are_documented_stay_integers() -> None:
    for op in (hazard, hazard_of_integers):
        (sample, *_) = check(op).samples
        assert {item.name: item.dtype for item in sample.args}["event"] == "int64"
    assert "GL401" in red(check(hazard_of_integers))
