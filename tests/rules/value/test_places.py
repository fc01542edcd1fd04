"""A wrong gradient is pointed at in the backward that ran, whatever the op is wrapped in."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

import gradlint
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.subject import Subject
from gradlint.targets.source import Place


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return 3 * g * x * weight, g * x * x


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


class OfInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))

    def forward(self, x):
        return Squared.apply(x, self.weight)


class OfSine(OfInput):
    def forward(self, x):
        return Copied.apply(Squared.apply(x.sin(), self.weight)).sum(0)


def squared_by_name(x, weight):
    return Squared.apply(x, weight)


compiled = torch.compile(squared_by_name, backend="aot_eager")


@torch.library.custom_op("gradlint_places::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


def _saved(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _of_cube(ctx, g):
    (x,) = ctx.saved_tensors
    return 2 * g * x * x


cube.register_autograd(_of_cube, setup_context=_saved)


@torch.library.custom_op("gradlint_places::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


def _of_halve(ctx, g):
    return g.mul_(0.5)


halve.register_autograd(_of_halve)


class Halving(nn.Module):
    def forward(self, x):
        return torch.ops.gradlint_places.halve(x)


def _text(place: Place) -> str:
    """What the place spans, or the line at which it starts."""
    location, excerpt, _ = place
    assert location is not None
    assert excerpt is not None
    line = dict(excerpt.lines)[location.line]
    return line[location.column - 1 : location.end_column - 1 if location.end_column else None]


X = torch.tensor([[0.3, -1.1, 0.9], [0.2, 0.7, -0.4]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("op", "args", "name", "text"),
    [
        (OfInput(), (X,), "x", "3 * g * x * weight"),
        (OfInput(), (X,), "weight", "g * x * x"),
        (OfSine(), (X,), "weight", "g * x * x"),
        (OfSine(), (X,), "x", "3 * g * x * weight"),
        (squared_by_name, (X, X[0].clone()), "x", "3 * g * x * weight"),
        (compiled, (X, X[0].clone()), "x", "3 * g * x * weight"),
        (cube, (X,), "x", "2 * g * x * x"),
        (lambda x: cube(x), (X,), "x", "2 * g * x * x"),
    ],
)
def test_the_expression_that_was_returned(subject, op, args, name, text):
    bound: Subject = subject(op, *args)
    item = next(one for one in bound.problem.inputs if one.name == name)
    assert _text(gradient_place(bound, item)) == text


def test_other_backwards_that_ran_are_named_beside_it(subject):
    bound: Subject = subject(OfSine(), X)
    _, _, related = gradient_place(bound, bound.problem.inputs[0])
    lines, start = inspect.getsourcelines(Copied)
    first = start + next(k for k, line in enumerate(lines) if "def backward" in line)
    assert [place.line for place in related] == [first]


def test_an_op_without_a_backward_of_its_own_is_pointed_at_itself(subject):
    bound: Subject = subject(nn.Tanh(), X)
    location, _, _ = gradient_place(bound, bound.problem.inputs[0])
    assert location is None or "class Tanh" in _text(gradient_place(bound, bound.problem.inputs[0]))


def test_a_write_in_the_backward_of_a_custom_op_is_pointed_at_there():
    (finding,) = gradlint.check(Halving(), [(torch.randn(3),)], seed=0, select=["GL602"]).findings
    lines = inspect.getsource(_of_halve).splitlines()
    line = inspect.getsourcelines(_of_halve)[1] + 1
    assert (finding.code, finding.location.line) == ("GL602", line)
    assert lines[1].strip() == "return g.mul_(0.5)"
