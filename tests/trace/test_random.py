"""Generators that an op holds, found wherever code can reach them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.trace.random import OwnGenerators

HELD = torch.Generator().manual_seed(5)


def by_global(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(3, generator=HELD)


def by_default(x: torch.Tensor, generator: torch.Generator = HELD) -> torch.Tensor:
    return x + torch.rand(3, generator=generator)


def by_helper(x: torch.Tensor) -> torch.Tensor:
    return by_global(x)


class Holder:
    def __init__(self) -> None:
        self.parts = {"generator": torch.Generator().manual_seed(5)}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(3, generator=self.parts["generator"])


class ByClass(torch.autograd.Function):
    generator = torch.Generator().manual_seed(5)

    @staticmethod
    def forward(ctx, x):
        return x + torch.rand(3, generator=ByClass.generator)

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize(
    ("op", "roots"),
    [
        (by_global, [by_global]),
        (by_default, [by_default]),
        (by_helper, [by_helper]),
        (functools.partial(by_default), [by_default]),
        (holder := Holder(), [holder]),
        (holder, [holder.__call__]),
        (ByClass.apply, [ByClass]),
    ],
)
def test_a_generator_is_found_and_set_back(op: Callable[..., Any], roots: list[Any]) -> None:
    own = OwnGenerators(roots)
    assert own
    assert not own.have_moved()
    own.reset()
    first = op(torch.zeros(3))
    assert own.have_moved()
    own.reset()
    assert not own.have_moved()
    assert torch.equal(op(torch.zeros(3)), first)


def test_python_and_numpy_generators() -> None:
    numpy = pytest.importorskip("numpy")
    held = [random.Random(1), numpy.random.default_rng(1), numpy.random.RandomState(1)]
    own = OwnGenerators([held])
    own.reset()
    first = [item.random() for item in held]
    assert own.have_moved()
    own.reset()
    assert [item.random() for item in held] == first


def test_ops_without_one_hold_none() -> None:
    assert not OwnGenerators([torch.nn.Linear(3, 3), torch.sin, {"x": torch.ones(3)}, (1, None)])


def test_generators_without_a_state_are_left_alone() -> None:
    own = OwnGenerators([{"system": random.SystemRandom()}])
    assert not own
    own.reset()
    assert not own.have_moved()
