"""Numbers between which a forward clamps."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._clamped import Ends, clamped_ends
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("x.clamp(a, b)", ("a", "b", False)),
        ("torch.clip(x, a, max=b)", ("a", "b", False)),
        ("x.clamp(max=b, min=a)", ("a", "b", False)),
        ("torch.round(x / s).clamp(a, b) * s", ("a", "b", True)),
        ("torch.floor(torch.clamp(x, a, b))", ("a", "b", True)),
        ("q = x.round()\nq = q.clamp(a, b)", ("a", "b", True)),
        ("q = torch.clamp(x, a, b)\ny = q.round()", ("a", "b", True)),
        # Another thing is rounded.
        ("x.clamp(a, b) * s.round()", ("a", "b", False)),
        ("y = x.round()\nz = s.clamp(a, b)", ("a", "b", False)),
        # One end, numbers, and what no name is.
        ("x.clamp(a)", None),
        ("x.clamp(min=a)", None),
        ("x.clamp(-1, 1)", None),
        ("x.clamp(-b, b)", None),
        ("clamp(x, a, b)", None),
    ],
)
def test_ends(code: str, ends: tuple[str, str, bool] | None) -> None:
    assert list(clamped_ends(ast.parse(code))) == ([] if ends is None else [Ends(*ends)])


class Levels(Function):
    """Rounds, straight-through, to levels of a learned width, which counts as often beyond the ends
    as these say. The ends are levels themselves."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, width: torch.Tensor, u: Any, v: Any) -> torch.Tensor:
        ctx.save_for_backward(x, width)
        ctx.ends = u, v
        return torch.round((x / width).clamp(u, v)) * width

    @classmethod
    def backward(cls, ctx: Any, grad: torch.Tensor) -> Any:
        x, width = ctx.saved_tensors
        level = x / width
        low, high = level < ctx.ends[0], level > ctx.ends[1]
        slope = torch.where(low | high, cls.beyond(low, high, ctx.ends), level.round() - level)
        return grad * ~(low | high), (grad * slope).sum().reshape(width.shape), None, None

    @staticmethod
    def beyond(low: torch.Tensor, high: torch.Tensor, ends: Any) -> torch.Tensor:
        return low * float(ends[0]) + high * float(ends[1])


class OneEnd(Levels):
    """Straight-through as well, with the lower end in place of the upper one."""

    @staticmethod
    def beyond(low: torch.Tensor, high: torch.Tensor, ends: Any) -> torch.Tensor:
        return (low | high) * float(ends[0])


def test_what_is_rounded_is_clamped_to_whole_numbers() -> None:
    (x, width, low, high) = infer(from_object(Levels), 0)[0].args
    assert (low, high) == (-2, 1)
    assert type(low) is type(high) is int
    assert bool((x / width > high).any())
    assert gradlint.check(Levels, order=1, seed=0).ok
    found = gradlint.check(OneEnd, order=1, seed=0).findings
    assert [(f.code, f.severity, f.input) for f in found if f.severity != "info"] == [
        ("GL401", "warning", "width")
    ]


class Between(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, u: float, v: float) -> torch.Tensor:
        ctx.save_for_backward((x >= u) & (x <= v))
        return x.clamp(u, v)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None


class BetweenTensors(Between):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward((x >= u) & (x <= v))
        return torch.max(torch.min(x.clamp(u, v), v), u)


class UpToDefault(Between):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, u: float, v: float = 0.25) -> torch.Tensor:
        ctx.save_for_backward((x >= u) & (x <= v))
        return x.clamp(u, v)


def test_the_lower_end_is_below_the_upper_one() -> None:
    _, low, high = infer(from_object(Between), 0)[0].args
    assert (low, high) == (-0.6, 0.7)
    assert isinstance(infer(from_object(BetweenTensors), 0)[0].args[1], torch.Tensor)
    assert infer(from_object(UpToDefault), 0)[0].args[1:] == (-0.6, 0.25)
