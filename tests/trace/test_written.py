"""Arguments that Functions write to, and those that they declare to."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import _SingleLevelFunction

from gradlint.trace.graph import memory_of
from gradlint.trace.written import argument_name, marked_dirty, written_arguments


class Writes(Function):
    @staticmethod
    def forward(ctx, scale, x):
        x.mul_(scale)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None, grad * 2


class Declares(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Wraps(Function):
    @staticmethod
    def forward(ctx, x):
        return Writes.apply(2, x.clone())

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def hidden() -> torch.Tensor:
    return torch.tensor([1.0, 2.0], requires_grad=True) * 1


def test_writes_are_seen_with_their_values() -> None:
    x = hidden()
    with written_arguments() as found:
        Writes.apply(2, x)
        x.detach().zero_()  # after the call: somebody else's
    (item,) = found
    assert (item.function, item.position) == (Writes, 1)
    assert (item.was.tolist(), item.now.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    assert argument_name(item.function, item.position) == "x"


def test_calls_inside_of_a_forward_are_its_own_business() -> None:
    with written_arguments() as found:
        Wraps.apply(hidden())
    assert found == []


def test_declared_memory() -> None:
    x = hidden()
    where = memory_of(x)
    with marked_dirty() as dirty:
        Declares.apply(x)
        Writes.apply(2, hidden())
    assert dirty == {where}


def test_torch_is_put_back() -> None:
    before = "apply" in vars(_SingleLevelFunction)
    with pytest.raises(ValueError, match="body"), written_arguments(), marked_dirty():
        raise ValueError("body")
    assert ("apply" in vars(_SingleLevelFunction)) == before
    with marked_dirty() as dirty:
        pass
    Declares.apply(hidden())
    assert dirty == set()
