"""The same random numbers in every dtype."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics._common_draws import CommonDraws, with_common_draws


def drawn(function, dtype):
    torch.manual_seed(7)
    return function(torch.ones(60, dtype=dtype))


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(
    "function",
    [
        torch.rand_like,
        lambda x: torch.randn(x.shape, dtype=x.dtype),
        lambda x: torch.empty_like(x).uniform_(-1, 1),
        lambda x: x.clone().normal_(),
        lambda x: (torch.rand_like(x) > 0.4).to(x.dtype),
        lambda x: torch.bernoulli(x * 0.5),
        lambda x: torch.randperm(60).to(x.dtype),
    ],
)
def test_float64_takes_the_numbers_of_the_low_dtype(function, narrow):
    low = drawn(function, narrow)
    with CommonDraws(torch.float64, narrow) as mode:
        wide = drawn(function, torch.float64)
    assert wide.dtype == torch.float64
    assert torch.equal(wide, low.double())
    assert mode.drawn


def test_a_map_that_draws_gets_new_outputs(as_map, randn):
    def masked(x):
        torch.manual_seed(5)
        return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    low = as_map(masked, [randn(80, dtype=torch.bfloat16)])
    twin = as_map(masked, [low.values[0].double()])
    assert not torch.equal(twin.outputs[0], low.outputs[0].double())
    found = with_common_draws(twin, torch.bfloat16)
    assert found is not None
    assert torch.equal(found.outputs[0], low.outputs[0].double())
    ones = torch.ones(80).double()
    (gradient,) = found.gradients_at(found.values, [ones])
    assert torch.equal(gradient != 0, low.outputs[0] != 0)


def test_a_map_that_draws_nothing_has_none(as_map, randn):
    assert with_common_draws(as_map(torch.exp, [randn(5)]), torch.bfloat16) is None
