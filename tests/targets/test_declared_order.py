"""The order of derivatives that an op promises, and what second order says of first."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.examine import examine
from gradlint.model.events import Found
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Lost(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.slope = x.detach().cos()
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.slope


class First(Lost):
    order = 1


class AlsoFirst(Lost):
    gradlint_order = 1


class Third(Lost):
    order = 3


class Spline(torch.nn.Module):
    order = 1  # of the spline

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


class FirstOnly(Spline):
    gradlint_order = 1


@pytest.mark.parametrize(
    ("op", "order"),
    [(Lost, None), (First, 1), (AlsoFirst, 1), (Third, None), (Spline, None), (FirstOnly, 1)],
)
def test_declared(op: Any, order: int | None) -> None:
    assert from_object(op).order == order


def second_order(op: Any, **settings: Any) -> list[Finding]:
    x = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64).requires_grad_()
    events: list[Any] = []
    made = Settings(select=("GL401", "GL5"), **settings)
    examine(from_object(op), [Sample("s", "sample_inputs", (x,))], made, events.append)
    return [event.finding for event in events if isinstance(event, Found)]


def test_first_order_is_told_beside_the_second() -> None:
    (found,) = second_order(Lost)
    assert (found.code, found.severity) == ("GL502", "warning")
    first, _, second = found.message.partition("; ")
    assert first.startswith("gradient right (to ")
    assert float(first.removeprefix("gradient right (to ").rstrip(")")) < 1e-6
    assert second.endswith("is silently zero")
    assert "--order 1" in found.help
    assert "`order = 1` in the class" in found.help


@pytest.mark.parametrize("op", [First, AlsoFirst])
def test_the_class_turns_it_off(op: Any) -> None:
    assert second_order(op) == []


def test_the_flag_turns_it_off() -> None:
    assert second_order(Lost, order=1) == []
