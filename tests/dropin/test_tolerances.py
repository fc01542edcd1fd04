"""eps, atol, rtol and nondet_tol widen what is accepted, where the caller gives them."""

from __future__ import annotations

import pytest
import torch

import gradlint
from tests.dropin.conftest import function, leaf, thrice


def _off(factor):
    return function(lambda x: x * x, lambda s, g: 2 * factor * s[0] * g)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(20,), (3000,)])
@pytest.mark.parametrize("options", [{"rtol": 0.1}, {"atol": 1.0, "rtol": 0.1}])
def test_a_tolerance_given_is_honoured(dtype, shape, options):
    inputs = (leaf(*shape, dtype=dtype),)
    assert not gradlint.gradcheck(_off(1.01), inputs, raise_exception=False)
    assert gradlint.gradcheck(_off(1.01), inputs, **options)
    assert not gradlint.gradcheck(_off(2.5), inputs, rtol=0.1, raise_exception=False)


def test_the_default_given_is_a_tolerance_too():
    inputs = (leaf(20),)
    assert not gradlint.gradcheck(_off(1.0005), inputs, raise_exception=False)
    assert gradlint.gradcheck(_off(1.0005), inputs, rtol=1e-3)


def test_a_step_given_is_accepted_where_torch_accepts_it():
    stairs = function(lambda x: torch.round(x * 8) / 8, lambda s, g: g)
    inputs = (torch.linspace(0.3, 4.3, 9, dtype=torch.float64, requires_grad=True),)
    assert not gradlint.gradcheck(stairs, inputs, raise_exception=False)
    assert gradlint.gradcheck(stairs, inputs, eps=0.5)
    assert not gradlint.gradcheck(thrice, inputs, eps=1e-3, raise_exception=False)


def test_nondeterminism_is_tolerated_as_far_as_it_is_given():
    noisy = function(lambda x: x * x, lambda s, g: 2 * s[0] * g * (1 + 1e-12 * torch.rand_like(g)))
    assert not gradlint.gradcheck(noisy, (leaf(5),), raise_exception=False)
    assert gradlint.gradcheck(noisy, (leaf(5),), nondet_tol=1e-10)
    assert not gradlint.gradcheck(noisy, (leaf(5),), nondet_tol=1e-16, raise_exception=False)
    off = _off(1.0005)
    assert not gradlint.gradcheck(off, (leaf(5),), nondet_tol=1e-10, raise_exception=False)


def test_a_backward_that_jitters_within_nondet_tol():
    """As PyTorch's own tests do: 1e-6 relative, under a tolerance of 1e-5."""
    jitters = function(lambda x: x * x, lambda s, g: 2 * s[0] * g * (1 + 1e-6 * torch.rand_like(g)))
    assert gradlint.gradcheck(jitters, (leaf(5, 5),), nondet_tol=1e-5)
    assert not gradlint.gradcheck(jitters, (leaf(5, 5),), raise_exception=False)
