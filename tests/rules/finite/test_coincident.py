"""GL302 where two rows of an input, or of two inputs, are equal: points in one place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.finite.special_values import coincident
from gradlint.experiments.finite.value_ranges import ValueRange
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def points(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def scale() -> torch.Tensor:
    return torch.tensor(0.7, dtype=torch.float64, requires_grad=True)


class Kernel(Function):
    """A kernel of the distance that is smooth where this is zero: (1 + r) exp(-r). Where all inputs
    are zero it is not finite."""

    @staticmethod
    def forward(ctx, x, y, scale):
        r = (x[:, None] - y[None]).norm(dim=-1) / scale
        ctx.save_for_backward(x, y, r, scale)
        return (1 + r) * torch.exp(-r)

    @staticmethod
    def backward(ctx, g):
        x, y, r, scale = ctx.saved_tensors
        moved = -(g * torch.exp(-r))[..., None] * (x[:, None] - y[None]) / scale**2
        return moved.sum(1), -moved.sum(0), (g * r**2 * torch.exp(-r)).sum() / scale


class DividesByTheDistance(Kernel):
    @staticmethod
    def backward(ctx, g):
        x, y, r, scale = ctx.saved_tensors
        away = (x[:, None] - y[None]) / r[..., None] / scale**2
        moved = -(g * r * torch.exp(-r))[..., None] * away
        return moved.sum(1), -moved.sum(0), (g * r**2 * torch.exp(-r)).sum() / scale


class Distance(Function):
    """Near it: a distance has no derivative at zero, whatever backward returns there."""

    @staticmethod
    def forward(ctx, x, y, scale):
        r = (x[:, None] - y[None]).norm(dim=-1) / scale
        ctx.save_for_backward(x, y, r, scale)
        return r * 1

    @staticmethod
    def backward(ctx, g):
        x, y, r, scale = ctx.saved_tensors
        moved = (g / r)[..., None] * (x[:, None] - y[None]) / scale**2
        return moved.sum(1), -moved.sum(0), -(g * r).sum() / scale


class Determinant(Function):
    """Near it: of square matrices, which with two equal rows have no inverse."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.linalg.det(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * torch.linalg.det(x))[..., None, None] * torch.linalg.inv(x).mT


def test_a_smooth_function_of_the_distance(probed: Callable[..., Outcome]) -> None:
    rule = by_code("GL302")
    assert rule is not None
    outcome = probed(rule, DividesByTheDistance, points(3, 4), points(5, 4, seed=1), scale())
    assert [(item.input, item.message) for item in outcome.findings] == [
        (
            name,
            f"gradient for `{name}` is NaN at [0, 0] (8 of {count} elements) where two rows are "
            "equal: the function has a finite derivative there",
        )
        for name, count in (("x", 12), ("y", 20))
    ]
    assert {item.severity for item in as_loud_as_evidence(outcome).findings} == {"warning"}


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (Kernel, [(3, 4), (5, 4)]),
        (Distance, [(3, 4), (5, 4)]),
        (Determinant, [(2, 3, 3)]),
    ],
)
def test_near_misses(
    probed: Callable[..., Outcome], op: type[Function], shapes: list[tuple[int, ...]]
) -> None:
    rule = by_code("GL302")
    assert rule is not None
    arguments = [points(*shape, seed=k) for k, shape in enumerate(shapes)]
    outcome = probed(rule, op, *arguments, *([scale()] if len(shapes) > 1 else []))
    assert not [item for item in outcome.findings if "two rows" in item.message]


def test_which_rows_become_equal() -> None:
    x, y, weights = points(3, 4).detach(), points(5, 4).detach(), points(4).detach()
    found = coincident([x, y, weights], [ValueRange()] * 3)
    assert found is not None
    assert torch.equal(found[0][:2], x[:1].expand(2, 4))
    assert torch.equal(found[1][:2], x[:1].expand(2, 4))
    assert torch.equal(found[0][2:], x[2:])
    assert torch.equal(found[1][2:], y[2:])
    assert torch.equal(found[2], weights)
    bands = coincident([x, 2 * x], [ValueRange()] * 2)
    assert bands is not None
    assert torch.equal(bands[1][:2], 2 * x[:1].expand(2, 4))
    assert coincident([x, y], [ValueRange(equal=False)] * 2) is None
    assert coincident([points(3, 3).detach()], [ValueRange()]) is None
