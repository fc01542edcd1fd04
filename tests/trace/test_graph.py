"""Nodes of the user's Functions, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.trace.graph import held_tensors, memory_of, memory_owner, python_nodes, saved_by
from gradlint.trace.op_io import Handed


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.cache = {"twice": [x * 2]}
        ctx.shape = x.shape
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


X = torch.tensor([0.5, -1.5], requires_grad=True)


def test_python_nodes_are_found_behind_others() -> None:
    outputs = [Sine.apply(Sine.apply(X) * 2).sum(), X.exp()]
    assert [node._forward_cls for node in python_nodes(outputs)] == [Sine, Sine]
    assert python_nodes([X, X.exp(), X.detach()]) == []


def test_what_a_node_holds_is_named() -> None:
    output = Sine.apply(X)  # older versions of torch free what is saved with it
    (node,) = python_nodes([output])
    assert [name for name, _ in held_tensors(node)] == ["ctx.cache['twice'][0]"]
    assert [name for name, _ in saved_by(node)] == ["saved_tensors[0]", "ctx.cache['twice'][0]"]


def test_containers_in_themselves_end() -> None:
    (node,) = python_nodes([Sine.apply(X)])
    node.cache["self"] = node.cache
    assert len(held_tensors(node)) <= 4


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y: x.view(-1), ("input", "x")),
        (lambda x, y: y[:1], ("output", "output")),
        (lambda x, y: x.clone(), ("intermediate", "")),
        (lambda x, y: torch.eye(2).to_sparse(), ("intermediate", "")),
    ],
)
def test_whose_memory_it_is(make: Callable[..., Any], expected: tuple[str, str]) -> None:
    x, y = torch.ones(2), torch.zeros(2)
    assert memory_owner(make(x, y), [Handed("x", x, x, 0)], [("output", y)]) == expected


def test_tensors_without_memory() -> None:
    assert memory_of(torch.ones(2, device="meta")) is None
    assert memory_of(torch.ones(0)) is None
    assert memory_of(torch.eye(2).to_sparse()) is None
