"""GL501 at zeros that backward guards against: the branch that is not chosen must be harmless."""

from __future__ import annotations

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.order import wrong_second_derivative
from gradlint.targets.build import from_object


class Sinc(torch.autograd.Function):
    """Differentiates the quotient at zero, too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x.abs() < 1e-3, -x / 3 + x**3 / 30, Sinc.slope(x))

    @staticmethod
    def slope(x):
        return (torch.cos(x) - torch.sin(x) / x) / x


class SafeSinc(Sinc):
    """Divides by one there."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        small = x.abs() < 1e-3
        z = torch.where(small, torch.ones_like(x), x)
        return g * torch.where(small, -x / 3 + x**3 / 30, Sinc.slope(z))


class Root(torch.autograd.Function):
    """|x|^1.5, whose second derivative is infinite at zero by nature."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs() ** 1.5

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x == 0, torch.zeros_like(x), 1.5 * x.sign() * x.abs().sqrt())


class Norm(torch.autograd.Function):
    """The length of rows, which is not smooth at zero; its gradient is zero there by choice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(-1).sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.square().sum(-1, keepdim=True).sqrt()
        return g.unsqueeze(-1) * torch.where(n == 0, torch.zeros_like(x), x / n)


class Unguarded(torch.autograd.Function):
    """Square by way of a root: without a guard, nobody meant zero to be taken."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x.sign() * (x * x).sqrt()


def _subject(function: type) -> Subject:
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    return Subject(from_object(function), Sample("given", "class", (x,), {}), Settings(seed=0))


def test_the_branch_that_is_not_chosen_makes_it_nan() -> None:
    subject = _subject(Sinc)
    (finding,) = wrong_second_derivative.probe(subject).findings
    assert finding.severity == "warning"
    assert finding.input == "x"
    assert finding.message == (
        "second derivative with respect to `x` is NaN at [0, 0] where every element is zero: the "
        "gradient has a finite derivative there"
    )
    # The gradient is −g·x/3 there, weighed with random numbers.
    (g,) = subject.run.cotangents.values()
    w = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert finding.evidence["measured"] == pytest.approx(float(-g[0, 0] * w[0, 0] / 3), rel=1e-4)


@pytest.mark.parametrize("function", [SafeSinc, Root, Norm, Unguarded])
def test_near_misses(function: type) -> None:
    outcome = wrong_second_derivative.probe(_subject(function))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_without_a_choice_it_costs_nothing() -> None:
    subject = _subject(Unguarded)
    wrong_second_derivative.probe(subject)
    assert not subject.made("make_extremes")
