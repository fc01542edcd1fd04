"""How many arguments ``*args`` stands for: those that forward depends on."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class Square(Function):
    """Takes its argument alone, or behind a context."""

    @staticmethod
    def forward(*args):
        assert len(args) in (1, 2)
        return args[-1].square()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[-1])

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output


class Six(Square):
    """Takes rows of six only."""

    @staticmethod
    def forward(*args):
        assert len(args) in (1, 2)
        return args[-1].view(-1, 6).square().reshape(args[-1].shape)


class Total(Function):
    """Depends on all arguments; backward returns a gradient for one of them."""

    @staticmethod
    def forward(ctx, *terms):
        return torch.stack([term.sum() for term in terms]).sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Through(Function):
    """Any function, and the gradient as it is."""

    @staticmethod
    def forward(ctx, op, *args, **kwargs):
        return op(*args, **kwargs)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *grads)


def rounded(x):
    return Rounds.apply(torch.round, x)


class Rounds(Through):
    """Any function, with the gradient as it is: a straight-through estimator."""


class TooFew(Function):
    """A product of all, and the gradient as it is: too few of them."""

    @staticmethod
    def forward(ctx, scale, *args):
        return args[0] * args[-1] * (2.0 if scale else 1.0)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *grads)


class Moved(Function):
    """A moving average."""

    @staticmethod
    def forward(ctx, *args):
        updates, mu, decay = args
        ctx.decay = decay
        return mu.mul(decay).add(updates, alpha=1 - decay)

    @staticmethod
    def backward(ctx, *args):
        (g,) = args
        return (1 - ctx.decay) * g, ctx.decay * g, None


class WrongMoved(Moved):
    @staticmethod
    def backward(ctx, *args):
        (g,) = args
        return ctx.decay * g, ctx.decay * g, None


class Scaled(Function):
    @staticmethod
    def forward(ctx, *args):
        mu, nu, (eps, count) = args
        ctx.save_for_backward(mu, nu)
        ctx.others = (eps, count)
        return mu / (1 + nu * nu + eps) / count

    @staticmethod
    def backward(ctx, g):
        mu, nu = ctx.saved_tensors
        eps, count = ctx.others
        d = 1 + nu * nu + eps
        return g / d / count, -2 * nu * g * mu / d**2 / count, None


class WrongScaled(Scaled):
    @staticmethod
    def backward(ctx, g):
        mu, nu = ctx.saved_tensors
        eps, count = ctx.others
        d = 1 + nu * nu + eps
        return g / d / count, -nu * g * mu / d**2 / count, None


def count(op: type[Function]) -> int:
    return len(infer(from_object(op), seed=1)[0].args)


def test_what_forward_ignores_is_left_out() -> None:
    assert count(Square) == 1
    assert count(Six) == 1


def test_what_forward_uses_stays() -> None:
    assert count(Total) == 2


def errors(op: type[Function]) -> list[tuple[str, str | None]]:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL1", "GL2", "GL4"]).targets
    return [(f.code, f.input) for f in report.findings if f.severity in ("error", "warning")]


def test_as_many_arguments_as_the_stand_in_has_outputs() -> None:
    assert count(Through) == 2  # the function, and one tensor
    assert all(code != "GL101" for code, _ in errors(Through))


def test_the_function_that_a_call_passes() -> None:
    function, _ = infer(from_object(Rounds), seed=1)[0].args
    assert function is torch.round
    assert errors(Rounds) == []


def test_too_few_gradients_without_a_stand_in_are_a_fault() -> None:
    assert [code for code, _ in errors(TooFew)] == ["GL101"]


def test_names_that_forward_gives_to_its_arguments() -> None:
    updates, mu, decay = infer(from_object(Moved), seed=1)[0].args
    assert updates.shape == mu.shape
    assert isinstance(decay, float)
    _, _, (eps, number) = infer(from_object(Scaled), seed=1)[0].args
    assert isinstance(eps, float)
    assert isinstance(number, (int, float))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Moved, []),
        (Scaled, []),
        (WrongMoved, [("GL401", "args[0]")]),
        (WrongScaled, [("GL401", "args[1]")]),
    ],
)
def test_gradients_of_such_arguments_are_judged(op, expected) -> None:
    assert errors(op) == expected
