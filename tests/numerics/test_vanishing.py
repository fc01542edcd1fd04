"""Gradients that are zero but for rounding agree; those that are merely tiny can't be told."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.decide import LOST, ZERO, decide
from gradlint.numerics.directions import cotangent
from gradlint.numerics.verdict import AGREES, DIFFERS, UNSURE

F = torch.nn.functional
SEEDS = range(10)

# name → a function of x and a bias that changes nothing.
INVARIANT = {
    "softmax": lambda x, b: (x + b).softmax(-1),
    "batch norm": lambda x, b: F.batch_norm(x + b, None, None, training=True),
    "layer norm": lambda x, b: F.layer_norm(x + b, x.shape[-1:]),
    "difference": lambda x, b: (x + b) - (x + b).mean(),
}


SHAPES = {"batch norm": (1, 5), "difference": ()}


def values_of(name, randn, seed):
    return [randn(6, 5, seed=seed), randn(*SHAPES.get(name, (6, 1)), seed=seed + 100)]


@pytest.mark.parametrize("name", INVARIANT)
def test_a_gradient_that_cancels_agrees_with_zero(name, as_map, randn):
    for seed in SEEDS:
        found = decide(as_map(INVARIANT[name], values_of(name, randn, seed)), seed=seed)
        assert found.verdicts == [AGREES, AGREES], seed
        assert found.notes.get(1) in (ZERO, None)  # None where what is left is exactly zero
        assert found.resolution_of(1) < 1e-6


@pytest.mark.parametrize("name", ["softmax", "layer norm"])
def test_what_should_cancel_and_does_not_differs(name, as_map, randn):
    for seed in SEEDS:
        function = as_map(
            INVARIANT[name], values_of(name, randn, seed), faults={1: lambda g: g + 1e-6}
        )
        assert decide(function, seed=seed).verdicts == [AGREES, DIFFERS], seed


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_tiny_gradient_is_not_taken_for_zero(factor, as_map, randn):
    for seed in SEEDS:
        values = [randn(6, 5, seed=seed), randn(6, 5, seed=seed + 100)]
        function = as_map(
            lambda x, y: x + 1e-16 * y, values, faults={1: lambda gradient: factor * gradient}
        )
        found = decide(function, seed=seed)
        assert found.verdicts == [AGREES, UNSURE]
        assert found.notes[1] == LOST


def test_outputs_that_are_rounding_are_weighed_by_what_cancelled(randn):
    noise = 1e-16 * randn(4, 3)
    generator = torch.Generator().manual_seed(0)
    alone = cotangent(noise, generator)
    assert alone.abs().min() > 1e15  # an honest output may be as small
    beside = cotangent(noise, generator, rounding=1e-16)
    assert beside.abs().max() < 2.0
    ordinary = cotangent(randn(4, 3), generator, rounding=1e-16)
    assert ordinary.abs().max() < 2.0
