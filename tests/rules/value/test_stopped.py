"""Gradients that forward stops are named with the line, and proved by letting them through."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

F = torch.nn.functional


def detached(x: Tensor, y: Tensor) -> Tensor:
    return x * y.detach() + y


def by_data(x: Tensor, y: Tensor) -> Tensor:
    return x * y.data + y


def without_grad(x: Tensor, y: Tensor) -> Tensor:
    with torch.no_grad():
        scale = y.square()
    return x * scale + y


def quantized(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    nearest = y[torch.cdist(x, y).argmin(-1)]
    return x + (nearest - x).detach(), F.mse_loss(nearest, x.detach())


class Scaled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3.0


def wrong_besides(x: Tensor, y: Tensor) -> Tensor:
    return Scaled.apply(x) * y.detach()


def harmless(x: Tensor, y: Tensor) -> Tensor:
    assert not y.detach().isnan().any()
    with torch.no_grad():
        shift = x.amax(-1, keepdim=True)
    return (x - shift).softmax(-1) * y


def rounded(x: Tensor, y: Tensor) -> Tensor:
    return x + (x.round() - x).detach() + y


def probe(probed: Callable[..., Outcome], op: object) -> Outcome:
    generator = torch.Generator().manual_seed(0)
    rule = by_code("GL401")
    assert rule is not None
    return probed(rule, op, *(torch.randn(4, 3, generator=generator) for _ in range(2)))


@pytest.mark.parametrize(
    ("op", "lines", "inputs"),
    [
        (detached, 1, ["y"]),
        (by_data, 1, ["y"]),
        (without_grad, 1, ["y"]),
        (quantized, 2, ["x", "y"]),
    ],
)
def test_stops_are_named(
    probed: Callable[..., Outcome], op: Callable[..., object], lines: int, inputs: list[str]
) -> None:
    findings = probe(probed, op).findings
    assert [item.input for item in findings] == inputs
    for finding in findings:
        assert (finding.severity, finding.cause) == ("warning", "detached")
        assert finding.location is not None
        assert finding.location.line == op.__code__.co_firstlineno + lines
        assert finding.excerpt is not None
        assert finding.excerpt.label == "gradients stop here"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns of calls are not kept before")
def test_the_call_is_marked(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, detached).findings
    assert finding.location is not None
    line = "    return x * y.detach() + y"
    marked = slice(finding.location.column - 1, finding.location.end_column - 1)
    assert line[marked] == "y.detach()"


def test_a_wrong_backward_is_not_excused(probed: Callable[..., Outcome]) -> None:
    findings = probe(probed, wrong_besides).findings
    assert {item.input for item in findings} >= {"x"}
    assert {item.severity for item in findings} == {"error"}
    assert "detached" not in {item.cause for item in findings}


def test_stops_that_change_no_gradient_are_no_news(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, harmless)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_a_straight_through_estimator_stays_one(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, rounded).findings
    assert (finding.input, finding.severity, finding.cause) == ("x", "warning", "straight-through")


class ClippedWeightUntold(Function):
    """min(r, 1.3) * logp with r = exp(logp - old)."""

    @staticmethod
    def forward(ctx: Any, logp: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        weight = (logp - old).exp().clamp(max=1.3)
        ctx.save_for_backward(weight)
        return weight * logp

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        (weight,) = ctx.saved_tensors
        return g * weight, None


class ClippedWeight(ClippedWeightUntold):
    """sg[min(r, 1.3)] * logp with r = exp(logp - old), where sg is stop-gradient."""


class ClippedWeightMasked(ClippedWeight):
    """sg[min(r, 1.3)] * logp with r = exp(logp - old), where sg is stop-gradient."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        (weight,) = ctx.saved_tensors
        return g * weight * (weight < 1.3), None


@pytest.mark.parametrize(
    ("op", "severity"),
    [(ClippedWeight, "info"), (ClippedWeightUntold, "error"), (ClippedWeightMasked, "error")],
)
def test_a_documented_stop_in_a_function(op: type[Function], severity: str) -> None:
    generator = torch.Generator().manual_seed(4)
    logp = torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    old = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    (report,) = gradlint.check(op, [(logp, old)], seed=0, order=1, select=["GL401"]).targets
    assert {f.severity for f in report.findings} == {severity}


class Distance(Function):
    @staticmethod
    def forward(ctx: Any, student: torch.Tensor, guide: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(student, guide)
        return (student - guide).square().sum()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        student, guide = ctx.saved_tensors
        return 2 * g * (student - guide), None


class DistanceOfBoth(Distance):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        student, guide = ctx.saved_tensors
        return 2 * g * (student - guide), 2 * g * (guide - student)


class Distilled(torch.nn.Module):
    """With a moving average that stops a gradient of its own."""

    def __init__(self, function: type[Function], stops: bool) -> None:
        super().__init__()
        self.function, self.stops = function, stops
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64))

    def forward(self, student: torch.Tensor, guide: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.seen.mul_(0.9).add_(0.1 * student.mean())
        return self.function.apply(student, guide.detach() if self.stops else guide)


@pytest.mark.parametrize(
    ("function", "stops", "loud"),
    [(Distance, True, False), (Distance, False, True), (DistanceOfBoth, True, True)],
)
def test_a_stop_before_a_function_that_has_no_gradient_either(
    function: type[Function], stops: bool, loud: bool
) -> None:
    generator = torch.Generator().manual_seed(4)
    values = [torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2)]
    inputs = tuple(value.requires_grad_() for value in values)
    (report,) = gradlint.check(Distilled(function, stops), [inputs], seed=0, order=1).targets
    assert any(f.severity != "info" for f in report.findings if f.input == "guide") is loud
