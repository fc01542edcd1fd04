"""Gradients that forward stops are named with the line, and proved by letting them through."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

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
