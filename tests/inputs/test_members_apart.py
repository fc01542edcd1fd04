"""Sizes of axes of which code takes the members one by one: no others are meant."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs.members_apart import sizes_taken_apart


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s[:, 0] * s[:, 1] * s[:, 2]", {3: {1}}),
        ("q[..., 0] + q[..., 1] + q[..., 2] + q[..., 3]", {4: {-1}}),
        ("a, b = x.roll(-1, 1), torch.roll(x, -2, 1)", {3: {None}}),
        ("x.roll(-1, 1)", {}),
        ("x[:, 0] - x[:, 1]", {}),  # the first two of many
        ("x[:, 0] + y[0, 1] + z[..., 2]", {}),  # of other axes
        ("x[:, 1] + x[:, 2]", {}),
        ("x[0] + x[1] + x[2]", {}),
        ("x[:, 0] +", {}),
    ],
)
def test_sizes_taken_apart(text: str, found: dict[int, set[int | None]]) -> None:
    assert sizes_taken_apart([text]) == found


class Product(Function):
    """The product of the sides, squared; backward knows three of them."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.square().prod(1)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        squares = x.square()
        return 2 * (g * squares[:, 0] * squares[:, 1] * squares[:, 2])[:, None] / x


class OfThree(Product):
    """Backward takes the first three of any number."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * (g * x[:, :3].square().prod(1))[:, None] / x


@pytest.mark.parametrize(("sides", "severity"), [(Product, "info"), (OfThree, "error")])
def test_other_sizes_of_an_axis_that_is_taken_apart(sides: type[Function], severity: str) -> None:
    x = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    [report] = gradlint.check(sides, [(x,)], seed=0, order=1, select=["GL706"]).targets
    assert {item.severity for item in report.findings if item.cause == "odd-size"} == {severity}


class Moments(Function):
    """The squared volumes of boxes (N, 4) by three of their numbers; backward knows three boxes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return (x[..., 0] * x[..., 1] * x[..., 2]).square().sum(0)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        whole = 2 * g * (x[..., 0] * x[..., 1] * x[..., 2]).square()
        found = torch.cat([whole[:, None] / x[:, :3], torch.zeros_like(x[:, 3:])], 1)
        return torch.cat([found[:3], torch.zeros_like(found[3:])])


def test_coordinates_that_are_taken_apart_are_no_rows() -> None:
    x = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    [report] = gradlint.check(Moments, [(x,)], seed=0, order=1, select=["GL706"]).targets
    assert {item.severity for item in report.findings if item.cause == "odd-size"} == {"error"}


def test_the_size_is_inferred() -> None:
    [report] = gradlint.check(Product, seed=0, order=1, select=["GL401"]).targets
    assert report.findings == []


class Angles(Function):
    """The angles of triangles by the cosine rule."""

    @staticmethod
    def cosines(sides: torch.Tensor) -> torch.Tensor:
        b, c = sides.roll(-1, 1), sides.roll(-2, 1)
        return (b * b + c * c - sides * sides) / (2 * b * c)

    @staticmethod
    def forward(ctx: Any, sides: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(sides)
        return torch.acos(Angles.cosines(sides))

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (sides,) = ctx.saved_tensors
        b, c = sides.roll(-1, 1), sides.roll(-2, 1)
        cosines = Angles.cosines(sides)
        own = g * sides / (b * c * torch.sqrt(1 - cosines * cosines))
        first, second = own.roll(-1, 1), own.roll(-2, 1)
        return own - first * cosines.roll(-2, 1) - second * cosines.roll(-1, 1)


def test_sides_of_triangles_are_of_about_one_size() -> None:
    [report] = gradlint.check(Angles, seed=0, order=1, select=["GL401"]).targets
    assert (report.verdict, report.findings) == ("pass", [])
