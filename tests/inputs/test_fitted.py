"""Modules whose constructor was guessed are made anew for inputs that are given."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import gradlint
from gradlint.inputs.samples import samples_for
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Halved(torch.autograd.Function):
    """x·weight, and half of the gradient of the weight."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * weight, (g * x).sum((0, 2), keepdim=True) / 2


class Scale(nn.Module):
    def __init__(self, channels) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, channels).view(1, -1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class WrongScale(Scale):
    def forward(self, x: Tensor) -> Tensor:
        return Halved.apply(x, self.weight)


class Cell(nn.Module):
    def __init__(self, input_size, hidden_size, bias=True) -> None:
        super().__init__()
        self.ih = nn.Linear(input_size, hidden_size, bias)
        self.hh = nn.Linear(hidden_size, hidden_size, bias)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.ih(x) + self.hh(h))


class Refuses(Scale):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("never")


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def constructor_for(cls: type[nn.Module], *given: Any) -> dict[str, Any]:
    op = from_object(cls)
    before = dict(op.constructor)
    samples_for(op, Settings(seed=0), lambda: given)
    assert op.call is op.module
    assert (op.constructor == before) == (op.notes == from_object(cls).notes)
    return op.constructor


def test_sizes_are_those_of_the_inputs() -> None:
    assert constructor_for(Scale, randn(2, 3, 5)) == {"channels": 3}
    assert constructor_for(Cell, randn(2, 7), randn(2, 6)) == {"input_size": 7, "hidden_size": 6}


def test_what_runs_stays_and_what_never_runs_too() -> None:
    guess = from_object(Scale).constructor
    assert constructor_for(Scale, randn(2, guess["channels"], 9)) == guess
    assert constructor_for(Refuses, randn(2, 3, 9)) == guess


def test_a_constructor_that_was_told_stays() -> None:
    op = from_object(Scale, constructor={"channels": 5})
    samples_for(op, Settings(seed=0), lambda: (randn(2, 3, 4),))
    assert op.constructor == {"channels": 5}


def test_the_module_is_judged() -> None:
    flags = {"seed": 0, "order": 1, "select": ["GL003", "GL401"]}
    (right,) = gradlint.check(Scale, lambda: (randn(2, 3, 5),), **flags).targets
    assert (right.verdict, right.findings) == ("pass", [])
    (wrong,) = gradlint.check(WrongScale, lambda: (randn(2, 3, 5),), **flags).targets
    assert [(item.code, item.input) for item in wrong.findings] == [("GL401", "weight")]
