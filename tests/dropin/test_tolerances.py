"""eps, atol, rtol and nondet_tol mean what they mean in torch, whether given or not."""

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


#: Torch's own defaults, as a caller would spell them out.
DEFAULTS = {"eps": 1e-6, "atol": 1e-5, "rtol": 1e-3, "nondet_tol": 0.0}


def _matrix_off(error):
    """x @ w with a gradient of x that is off by ``error`` of each entry, signs alternating."""

    def backward(saved, g):
        x, w = saved
        signs = 1.0 - 2.0 * (torch.arange(w.numel()).reshape(w.shape) % 2)
        return g @ (w * (1.0 + error * signs)).mT, x.mT @ g

    return function(lambda x, w: x @ w, backward)


def _root_of(start_over):
    """A square root by Newton's iteration that stops early; its backward is that of the root."""

    def forward(a):
        x = torch.ones_like(a)
        while bool((x * x - a).abs().max() > start_over):
            x = 0.5 * (x + a / x)
        return x

    return function(forward, lambda s, g: 0.5 * g / s[0].sqrt())


#: name → function, inputs, whether torch's slow mode accepts it with its defaults.
AT_DEFAULTS = {
    "right": (_off(1.0), lambda: (leaf(20),), True),
    "off by half the tolerance": (_off(1.0005), lambda: (leaf(20),), True),
    "off by twice the tolerance": (_off(1.002), lambda: (leaf(20),), False),
    "off by half, errors that add up": (
        _matrix_off(5e-4),
        lambda: (leaf(4, 30), leaf(30, 20, seed=4)),
        True,
    ),
    "off by twice, errors that add up": (
        _matrix_off(2e-3),
        lambda: (leaf(4, 30), leaf(30, 20, seed=4)),
        False,
    ),
    "below atol": (
        function(lambda x: 1e-6 * x, lambda s, g: -1e-6 * g),
        lambda: (leaf(6),),
        True,
    ),
    "a solver that stops early": (
        _root_of(1e-3),
        lambda: (torch.linspace(1.6, 2.4, 7, dtype=torch.float64, requires_grad=True),),
        True,
    ),
    "a solver that stops far too early": (
        _root_of(0.3),
        lambda: (torch.linspace(1.6, 2.4, 7, dtype=torch.float64, requires_grad=True),),
        False,
    ),
}


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("name", AT_DEFAULTS)
def test_the_defaults_given_change_nothing_and_are_torchs(name):
    fn, inputs, accepted = AT_DEFAULTS[name]
    assert torch.autograd.gradcheck(fn, inputs(), raise_exception=False) is accepted
    for options in ({}, DEFAULTS, {"rtol": 1e-3}, {"atol": 1e-5, "rtol": 1e-3}):
        assert gradlint.gradcheck(fn, inputs(), raise_exception=False, **options) is accepted


def test_what_is_within_the_tolerances_is_logged(caplog):
    caplog.set_level("INFO", "gradlint.dropin")
    assert gradlint.gradcheck(_off(1.0005), (leaf(20),))
    (record,) = caplog.records
    assert "the gradient of input 0 differs by 5.0e-04 of its size, within" in record.getMessage()
    caplog.clear()
    assert gradlint.gradcheck(_off(1.0), (leaf(20),))
    assert not caplog.records


def test_a_large_gradient_that_torch_could_not_afford():
    """One wrong element of many is beyond the tolerances; half a permille of each is within."""

    def spoiled(saved, g):
        grad = 2 * saved[0] * g
        grad[4321] *= 1.1
        return grad

    inputs = (leaf(10_000),)
    assert gradlint.gradcheck(_off(1.0005), inputs)
    wrong = function(lambda x: x * x, spoiled)
    assert not gradlint.gradcheck(wrong, inputs, raise_exception=False)


@pytest.mark.parametrize(("error", "accepted"), [(5e-4, True), (5e-3, False)])
def test_forward_mode_has_the_same_tolerances(error, accepted):
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def jvp(ctx, t):
            return 2 * (1 + error) * ctx.saved_tensors[0] * t

    options = {"check_forward_ad": True, "check_backward_ad": False, "raise_exception": False}
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        assert check(Op.apply, (leaf(6),), **options) is accepted


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
    off = _off(1.005)
    assert not gradlint.gradcheck(off, (leaf(5),), nondet_tol=1e-10, raise_exception=False)


def test_a_backward_that_jitters_within_nondet_tol():
    """As PyTorch's own tests do: 1e-6 relative, under a tolerance of 1e-5."""
    jitters = function(lambda x: x * x, lambda s, g: 2 * s[0] * g * (1 + 1e-6 * torch.rand_like(g)))
    assert gradlint.gradcheck(jitters, (leaf(5, 5),), nondet_tol=1e-5)
    assert not gradlint.gradcheck(jitters, (leaf(5, 5),), raise_exception=False)


def test_changes_of_many_rows_do_not_add_up():
    """Each entry of the Jacobian changes by up to 1e-6, their sum over 100 outputs by more."""

    def backward(saved, g):
        return (g * (1 + 1e-6 * torch.rand_like(g))).sum().reshape(1)

    spread = function(lambda x: x.repeat(100), backward)
    x = (leaf(1),)
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        assert check(spread, x, nondet_tol=2e-6)
        assert not check(spread, x, nondet_tol=1e-8, raise_exception=False)
