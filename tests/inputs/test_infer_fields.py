"""Named tuples and dataclasses: what the code does with their fields."""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class State(NamedTuple):
    z: Tensor
    v: Tensor
    i: Tensor


class Chosen(NamedTuple):
    values: Tensor
    index: Tensor


class Outer(NamedTuple):
    inner: State
    rho: Tensor


class Leaf(NamedTuple):
    value: Tensor
    tree: Optional[Tree] = None  # noqa: UP045


class Tree(NamedTuple):
    value: Tensor
    leaf: Leaf


class Step(Function):
    @staticmethod
    def forward(ctx, x, z, v, i, w, r):
        ctx.save_for_backward(x, z, w, r)
        return v + i, i + x @ w.t() + z @ r.t()

    @staticmethod
    def backward(ctx, gv, gi):
        x, z, w, r = ctx.saved_tensors
        return gi @ w, gi @ r, gv, gv + gi, gi.t() @ x, gi.t() @ z


class WrongStep(Step):
    @staticmethod
    def backward(ctx, gv, gi):
        x, z, w, r = ctx.saved_tensors
        return gi @ w, gi @ r, gv, gi, gi.t() @ x, gi.t() @ z


def step(x: Tensor, s: State, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    return Step.apply(x, s.z, s.v, s.i, w, r)


def unpacked(x: Tensor, s: State, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    z, v, i = s
    return Step.apply(x, z, v, i, w, r)


def wrong(x: Tensor, s: State, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    return WrongStep.apply(x, s.z, s.v, s.i, w, r)


def wrong_unpacked(x: Tensor, s: State, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    z, v, i = s
    return WrongStep.apply(x, z, v, i, w, r)


def nested(x: Tensor, s: Outer, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    v, i = Step.apply(x, s.inner.z, s.inner.v, s.inner.i, w, r)
    return v + s.rho, i


def wrong_nested(x: Tensor, s: Outer, w: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    v, i = WrongStep.apply(x, s.inner.z, s.inner.v, s.inner.i, w, r)
    return v + s.rho, i


def perhaps(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    s: Optional[State],  # noqa: UP045 (the older form of the annotation)
) -> tuple[Tensor, Tensor]:
    if s is None:
        s = State(*(x.new_zeros(len(x), len(w)) for _ in range(3)))
    return Step.apply(x, s.z, s.v, s.i, w, r)


def picked(x: Tensor, chosen: Chosen) -> Tensor:
    return x[chosen.index] * chosen.values


# Annotations as objects: above they are texts.
perhaps.__annotations__["s"] = Optional[State]  # noqa: UP045


def state_of(op) -> State:
    args = infer(from_object(op), 0)[0].args
    return next(arg for arg in args if isinstance(arg, State))


@pytest.mark.parametrize("op", [step, unpacked, perhaps])
def test_fields_that_get_gradients_are_no_indices(op):
    state = state_of(op)
    assert [field.dtype for field in state] == [torch.float64] * 3
    assert state.v.shape == state.i.shape != state.z.shape


def test_a_state_within_a_state():
    args = infer(from_object(nested), 0)[0].args
    (outer,) = (arg for arg in args if isinstance(arg, Outer))
    assert isinstance(outer.inner, State)
    assert outer.rho.shape == outer.inner.v.shape == outer.inner.i.shape != outer.inner.z.shape


def summed(tree: Tree) -> Tensor:
    return (tree.value * tree.leaf.value).sum()


def test_classes_that_name_one_another():
    (tree,) = infer(from_object(summed), 0)[0].args
    assert isinstance(tree, Tree)
    assert (tree.leaf.value.shape, tree.leaf.tree) == (tree.value.shape, None)


def charged(x: Tensor, s: State) -> Tensor:
    return x + s.z + s.v * s.i


def test_a_field_of_one_letter_is_a_quantity():
    assert [field.dtype for field in state_of(charged)] == [torch.float64] * 3


def test_a_field_that_indexes_is_one():
    (_, chosen) = infer(from_object(picked), 0)[0].args
    assert (chosen.values.dtype, chosen.index.dtype) == (torch.float64, torch.int64)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (step, []),
        (unpacked, []),
        (nested, []),
        (perhaps, []),
        (wrong, ["s.i"]),
        (wrong_unpacked, ["s.i"]),
        (wrong_nested, ["s.inner.i"]),
    ],
)
def test_gradients_of_fields_are_judged(op, expected):
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL4"]).targets
    found = [item.input for item in report.findings if item.severity == "error"]
    assert found == expected
    assert report.verdict == ("fail" if expected else "pass")
