"""GL103 where the default of an argument tells whether what is given has a gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.experiments.contract.optional_inputs import default_tells
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class Smooth(Function):
    """Forgets the gradient of ``start``; without it, x[:, 0] stands in, and has one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, start: Tensor | None = None) -> Tensor:
        s = x[:, 0] if start is None else start
        ctx.given = start is not None
        return s.unsqueeze(1) + x.cumsum(1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gx = g.flip(1).cumsum(1).flip(1)
        if ctx.given:
            return gx, None
        return torch.cat([gx[:, :1] + g.sum(1, keepdim=True), gx[:, 1:]], 1), None


class Returned(Smooth):
    """The right one."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gx, _ = Smooth.backward(ctx, g)
        return gx, g.sum(1) if ctx.given else None


class Constant(Smooth):
    """``start`` is a constant where it is given."""


class Statement(Function):
    """The same in a statement, and through a local name."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, center: Tensor | None = None) -> Tensor:
        ctx.own = center is None
        middle = x.mean(-1, keepdim=True)
        if center is None:
            center = middle
        return x - 2 * center

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (g - 2 * g.mean(-1, keepdim=True) if ctx.own else g), None


class Zeros(Function):
    """A recurrence that forgets the gradient of its first state."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h0: Tensor | None = None) -> Tensor:
        h = x.new_zeros(x.shape[0]) if h0 is None else h0
        return h.unsqueeze(1) + x.cumsum(1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g.flip(1).cumsum(1).flip(1), None


class Running(Function):
    """Statistics that are given were measured before: no gradient, as in batch norm."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Tensor | None = None) -> Tensor:
        m = x.mean(0) if mean is None else mean
        ctx.own = mean is None
        return x - m

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (g - g.mean(0) if ctx.own else g), None


class Detached(Function):
    """Nothing is differentiated through the default."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shift: Tensor | None = None) -> Tensor:
        s = torch.ones_like(x[0]) if shift is None else shift
        return x + s

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, None


class Steps(Function):
    """Rounds to multiples of ``scale``, with a straight-through gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor | None = None) -> Tensor:
        s = x.abs().amax(-1, keepdim=True) / 7 if scale is None else scale
        return (x / s).round() * s

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, None


def _severities(function: type) -> list[str]:
    report = gradlint.check(function, select=["GL103"], seed=0, order=1)
    return [finding.severity for finding in report.findings if finding.code == "GL103"]


@pytest.mark.parametrize(
    ("function", "severities"),
    [
        (Smooth, ["warning"]),
        (Statement, ["warning"]),
        (Zeros, ["warning"]),
        (Returned, []),
        (Constant, ["info"]),
        (Running, ["info"]),
        (Detached, ["info"]),
        (Steps, ["info"]),
    ],
)
def test_forgotten_or_constant(function: type, severities: list[str]) -> None:
    assert _severities(function) == severities


def test_the_reason_names_the_input_that_the_default_is_computed_from() -> None:
    assert default_tells(Statement, "center", ["x"]) == (
        "where it is None, forward computes it from `x`, which has a gradient"
    )
    assert default_tells(Statement, "center", []) == ""
    assert default_tells(Detached, "shift", ["x"]) == ""
    assert default_tells(Running, "mean", ["x"]) == ""


def test_a_tensor_in_place_of_none_broadcasts_nothing_by_accident() -> None:
    """``start`` of shape (5, 4) would be taken, too, and its gradient for ``x`` be wrong."""
    samples = infer(from_object(Smooth))
    given = next(sample for sample in samples if sample.label == "start given")
    assert given.args[1].shape == given.args[0].shape[:1]
    report = gradlint.check(Constant, seed=0, order=1)
    assert [f.code for f in report.findings if f.severity != "info"] == []
