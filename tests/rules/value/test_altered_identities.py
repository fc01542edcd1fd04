"""GL401 on identities with a gradient of their own: information where name or documentation says
which, and it is that. Near them: the same with another sign, factor or bound, or nothing said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Identity(Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x.view_as(x)


class RevGrad(Identity):
    @staticmethod
    def backward(ctx, g):
        return -ctx.c * g, None


class Adversary(Identity):
    """Reverses the gradient, scaled by c."""

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.c, None


class NotReversed(Identity):
    """Reverses the gradient, scaled by c."""

    @staticmethod
    def backward(ctx, g):
        return ctx.c * g, None


class ReversedTwice(Identity):
    """Reverses the gradient, scaled by c."""

    @staticmethod
    def backward(ctx, g):
        return -(ctx.c**2) * g, None


class GradMultiply(Identity):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.c, None


class Divided(Identity):
    """The gradient is scaled by 1 / c."""

    @staticmethod
    def backward(ctx, g):
        return g / ctx.c, None


class Shifted(Identity):
    """The gradient is scaled by c."""

    @staticmethod
    def backward(ctx, g):
        return g * ctx.c + 0.1, None


class Clamped(Identity):
    """An identity. Its gradient is clipped to [-c, c] on the way back."""

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.c, ctx.c), None


class ClampedAbove(Identity):
    """An identity. Its gradient is clipped to [-c, c] on the way back."""

    @staticmethod
    def backward(ctx, g):
        return g.clamp(max=ctx.c), None


class OfNorm(Identity):
    """Clips the gradient to the norm c."""

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.c / (g.norm() + 1e-6)).clamp(max=1.0), None


class OfOtherNorm(Identity):
    """Clips the gradient to the norm c."""

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.c / (g.abs().sum() + 1e-6)).clamp(max=1.0), None


class Unsaid(Identity):
    """Hands on what it is given, without clipping gradients."""

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.c, ctx.c), None


class Reversal(torch.nn.Module):
    """A layer that reverses gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.strength = 0.3

    def forward(self, x: Tensor) -> Tensor:
        return RevGrad.apply(x, self.strength)


X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def severity(probed: Callable[..., Outcome], op: Any, *args: Any) -> str:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, X.clone().requires_grad_(), *args))
    return outcome.findings[0].severity


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (RevGrad, "info"),
        (Adversary, "info"),
        (NotReversed, "warning"),
        (ReversedTwice, "warning"),
        (GradMultiply, "info"),
        (Divided, "info"),
        (Shifted, "warning"),
        (Clamped, "info"),
        (ClampedAbove, "warning"),
        (OfNorm, "info"),
        (OfOtherNorm, "warning"),
        (Unsaid, "warning"),
    ],
)
def test_identities(probed: Callable[..., Outcome], op: type[Function], expected: str) -> None:
    assert severity(probed, op, 0.3) == expected


class Table(Function):
    """Rows of a table. The gradient is scaled by ``share`` on purpose."""

    factor = 1.0

    @staticmethod
    def forward(ctx, weight, rows, share):
        ctx.save_for_backward(rows)
        ctx.rows, ctx.share = len(weight), share
        return weight[rows]

    @classmethod
    def backward(cls, ctx, g):
        (rows,) = ctx.saved_tensors
        whole = g.new_zeros(ctx.rows, g.shape[1]).index_add(0, rows, g)
        return cls.factor * ctx.share * whole, None, None


class TableTwice(Table):
    """Rows of a table. The gradient is scaled by ``share`` on purpose."""

    factor = 2.0


class UnsaidTable(Table):
    """Rows of a table, of which a share is used."""


@pytest.mark.parametrize(
    ("op", "expected"), [(Table, "info"), (TableTwice, "warning"), (UnsaidTable, "warning")]
)
def test_a_documented_scale_of_the_gradient(
    probed: Callable[..., Outcome], op: type[Function], expected: str
) -> None:
    weight = torch.linspace(-1.0, 1.3, 12, dtype=torch.float64).reshape(4, 3)
    found = probed(by_code("GL401"), op, weight, torch.tensor([0, 3, 3, 1]), 0.3)
    (finding,) = as_loud_as_evidence(found).findings
    assert finding.severity == expected


def reversed_gradient(x: Tensor) -> Tensor:
    """Hands the gradient back reversed."""
    return RevGrad.apply(x, 0.3)


@pytest.mark.parametrize("op", [reversed_gradient, Reversal()])
def test_what_calls_a_function_holds_the_number(probed: Callable[..., Outcome], op: Any) -> None:
    assert severity(probed, op) == "info"


class ReversedInPart(Function):
    """Reverses the gradient, scaled by c; masked samples send nothing back."""

    factor = -1.0

    @staticmethod
    def forward(ctx, x, c, mask):
        ctx.c, ctx.mask = c, mask
        return x.view_as(x)

    @classmethod
    def backward(cls, ctx, g):
        found = cls.factor * ctx.c * g
        return (found if ctx.mask is None else found.masked_fill(ctx.mask, 0.0)), None, None


class KeptInPart(ReversedInPart):
    """Reverses the gradient, scaled by c; masked samples send nothing back."""

    factor = 1.0


def test_where_a_mask_is_given_some_may_be_stopped(probed: Callable[..., Outcome]) -> None:
    mask = torch.tensor([[True], [False], [False]])
    assert severity(probed, ReversedInPart, 0.3, mask) == "info"
    assert severity(probed, KeptInPart, 0.3, mask) == "warning"
    assert severity(probed, ReversedInPart, 0.3, torch.ones(3, 1, dtype=torch.bool)) == "warning"
