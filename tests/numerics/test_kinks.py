"""Which outputs have a kink at the point."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.kinks import kinked_outputs

F64 = torch.float64

# Smooth functions with large second and third derivatives among them.
SMOOTH = [
    torch.exp,
    torch.sin,
    torch.tanh,
    lambda x: x**2,
    lambda x: x**3,
    lambda x: 1 / (x**2 + 0.5),
    lambda x: torch.nn.functional.gelu(x),
    lambda x: torch.softmax(x, -1),
    lambda x: torch.logsumexp(5 * x, -1, keepdim=True),
    lambda x: x * x.abs(),  # continuous first derivative
    lambda x: torch.nn.functional.softplus(3 * x),
    lambda x: x + 1e6,
]


@pytest.mark.parametrize("function", SMOOTH)
@pytest.mark.parametrize("h", [2.0**-10, 2.0**-17])
def test_smooth_functions_have_no_kinks(function, h, randn):
    for seed in range(20):
        x, u = randn(4, 6, seed=seed), randn(4, 6, seed=seed + 100)
        (flags,) = kinked_outputs(lambda t: [function(t)], x, u, [function(x)], h)
        assert int(flags.sum()) == 0


@pytest.mark.parametrize("h", [2.0**-6, 2.0**-10, 2.0**-17])
@pytest.mark.parametrize(
    ("function", "at"),
    [
        (torch.relu, 0.0),
        (torch.abs, 0.0),
        (lambda x: torch.maximum(x, 3 - 2 * x), 1.0),
        (lambda x: x.clamp(-0.5, 0.5), 0.5),
        (lambda x: torch.nn.functional.leaky_relu(x, 0.3), 0.0),
    ],
)
def test_exactly_the_elements_at_a_kink_are_flagged(function, at, h, randn):
    x = torch.tensor([at, at + 0.9, at - 0.7, at], dtype=F64)
    u = torch.tensor([0.8, 1.0, -1.0, -1.3], dtype=F64)
    (flags,) = kinked_outputs(lambda t: [function(t)], x, u, [function(x)], h)
    assert flags.tolist() == [True, False, False, True]


def test_outputs_are_told_apart():
    x, u = torch.tensor([0.0, 1.0], dtype=F64), torch.ones(2, dtype=F64)

    def function(t):
        return [t.exp(), t.relu(), t.relu().sum()]

    smooth, kinked, total = kinked_outputs(function, x, u, function(x), 2.0**-10)
    assert smooth.tolist() == [False, False]
    assert kinked.tolist() == [True, False]
    assert bool(total)


def test_kink_at_a_third_of_the_step_is_seen_by_the_second_halving():
    x, u, h = torch.tensor([1.0], dtype=F64), torch.ones(1, dtype=F64), 2.0**-8
    function = lambda t: [(t - (1.0 - h / 3)).abs()]  # noqa: E731
    assert bool(kinked_outputs(function, x, u, function(x), h)[0])


def test_max_ties_are_kinks():
    x = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0]], dtype=F64)
    u = torch.tensor([[1.0, -1.0, 0.3], [0.5, 1.0, 1.0]], dtype=F64)
    (flags,) = kinked_outputs(lambda t: [t.amax(-1)], x, u, [x.amax(-1)], 2.0**-10)
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize(
    "function", [lambda t: None, lambda t: [t[:1]], lambda t: [t * float("nan")]]
)
def test_nothing_is_flagged_where_nothing_can_be_measured(function):
    x = torch.ones(3, dtype=F64)
    (flags,) = kinked_outputs(function, x, x, [x], 0.01)
    assert flags.tolist() == [False, False, False]


def test_empty_and_zero_dimensional_outputs():
    x = torch.zeros(0, dtype=F64)
    assert kinked_outputs(lambda t: [t], x, x, [x], 0.1)[0].shape == (0,)
    one = torch.tensor(0.0, dtype=F64)
    assert bool(kinked_outputs(lambda t: [t.abs()], one, one + 1, [one], 0.1)[0])
