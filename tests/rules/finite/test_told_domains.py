"""Special values keep to what documentation says of inputs that are given: positive, increasing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.experiments.finite.extremes import ranges_of
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code
from gradlint.trace.coverage import Coverage


class Scaled(Function):
    """x times a scale; backward has no gradient for one that is not positive."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, torch.where(scale > 0, grad_output * x, 0.0)


class ScaledByPositive(Scaled):
    """x times a scale.

    Args:
        x: (C,) any numbers
        scale: (C,) positive, C the size of the only axis
    """


class ScaledByNonnegative(Scaled):
    """x times a scale.

    Args:
        x: (C,) any numbers
        scale: (C,) non-negative, where positive a factor
    """


class Interpolated(Function):
    """Values between knots."""

    @staticmethod
    def forward(ctx, query, knots, values):
        place = torch.searchsorted(knots, query).clamp(1, knots.numel() - 1)
        width = knots[place] - knots[place - 1]
        share = ((query - knots[place - 1]) / width).clamp(0, 1)
        ctx.save_for_backward(query, knots, values, place)
        return values[place - 1] * (1 - share) + values[place] * share

    @staticmethod
    def backward(ctx, grad_output):
        query, knots, values, place = ctx.saved_tensors
        width = knots[place] - knots[place - 1]
        share = ((query - knots[place - 1]) / width).clamp(0, 1)
        inside = (query > knots[0]) & (query < knots[-1])
        slope = grad_output * (values[place] - values[place - 1]) / width * inside
        of_knots = torch.zeros_like(knots).index_add(0, place - 1, -slope * (1 - share))
        of_values = torch.zeros_like(values).index_add(0, place - 1, grad_output * (1 - share))
        return (
            slope,
            of_knots.index_add(0, place, -slope * share),
            of_values.index_add(0, place, grad_output * share),
        )


class InterpolatedByIncreasing(Interpolated):
    """Values between knots.

    Args:
        query: where
        knots: (K,), strictly increasing
        values: (K,), at the knots
    """


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(
    ("op", "verdict"),
    [(Scaled, "fail"), (ScaledByPositive, "pass"), (ScaledByNonnegative, "fail")],
)
def test_what_is_told_to_be_positive_is_not_zero(
    probed: Callable[..., Outcome], op: type[Function], verdict: str
) -> None:
    x, scale = numbers(0.3, -0.2, 1.7, -2.1, 0.4), numbers(0.8, 0.9, 0.7, 1.1, 1.3)
    assert probed(by_code("GL402"), op, x, scale).verdict == verdict


@pytest.mark.parametrize(
    ("op", "verdict"), [(Interpolated, "fail"), (InterpolatedByIncreasing, "pass")]
)
def test_what_is_told_to_increase_is_not_all_equal(
    probed: Callable[..., Outcome], op: type[Function], verdict: str
) -> None:
    query, knots = numbers(0.3, 1.2, 2.6, 0.9), numbers(0.0, 1.0, 2.2, 3.1)
    outcome = probed(by_code("GL302"), op, query, knots, numbers(0.4, -0.3, 0.9, 1.4))
    assert outcome.verdict == verdict


class Equilibrium(Function):
    """z = tanh(W z + x), solved by iteration forward and backward, 200 times at most."""

    @staticmethod
    def forward(ctx, x, W):
        z = torch.zeros_like(x)
        for _ in range(200):
            new = torch.tanh(W @ z + x)
            ended = bool((new - z).abs().max() < 1e-12)
            z = new
            if ended:
                break
        ctx.save_for_backward(W, z)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        W, z = ctx.saved_tensors
        slope, u = 1 - z * z, grad_output
        for _ in range(200):
            new = grad_output + W.mT @ (slope * u)
            ended = bool((new - u).abs().max() < 1e-12)
            u = new
            if ended:
                break
        return slope * u, torch.outer(slope * u, z)


@pytest.mark.parametrize(("scale", "kept"), [(0.15, True), (1.0, False)])
def test_an_iteration_is_given_contractions(
    subject: Callable[..., Subject], scale: float, kept: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    W = scale * torch.randn(5, 5, dtype=torch.float64, generator=generator)
    x = 0.1 * torch.randn(5, dtype=torch.float64, generator=generator)
    bound = subject(Equilibrium, x, W)
    bound.coverage = Coverage(bound.op)
    with bound.coverage.watching():
        bound.problem.forward()
    of_x, of_W = ranges_of(bound)
    assert of_x.holds(0.0)
    assert of_W.holds(0.0) is not kept
