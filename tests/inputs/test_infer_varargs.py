"""How many arguments ``*args`` stands for: those that forward depends on."""

from __future__ import annotations

import torch
from torch.autograd import Function

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


def count(op: type[Function]) -> int:
    return len(infer(from_object(op), seed=1)[0].args)


def test_what_forward_ignores_is_left_out() -> None:
    assert count(Square) == 1
    assert count(Six) == 1


def test_what_forward_uses_stays() -> None:
    assert count(Total) == 2
