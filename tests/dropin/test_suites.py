"""Whole suites run on the drop-ins as they ran on torch: swapped in by assignment, with its
warnings, and with the counts of calls that PyTorch's own tests expect."""

from __future__ import annotations

import sys

import pytest
import torch
import torch.autograd.forward_ad as fwd
from torch.autograd.gradcheck import GradcheckError

import gradlint
from tests.dropin.conftest import leaf, square, thrice

BOTH = (gradlint, torch.autograd)
NOT_DOUBLE = "Input #1 requires gradient and is not a double precision floating point or complex"


@pytest.mark.filterwarnings("error", "ignore:Input #0")
@pytest.mark.parametrize("where", ["package", "module"])
def test_swapped_in_by_assignment(monkeypatch, where):
    module = sys.modules["torch.autograd.gradcheck"]
    home = torch.autograd if where == "package" else module
    monkeypatch.setattr(home, "gradcheck", gradlint.gradcheck)
    monkeypatch.setattr(home, "gradgradcheck", gradlint.gradgradcheck)
    assert home.gradcheck(square, (leaf(3),))
    assert home.gradgradcheck(square, (leaf(3),))
    handed_on = torch.ones(3, 3).to_mkldnn().requires_grad_()
    assert home.gradcheck(lambda x: x.to_dense() * 2, (handed_on,), eps=0.1, atol=0.1)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
        home.gradcheck(lambda x: thrice(x.to_dense()), (handed_on,), eps=0.1, atol=0.1)
    with pytest.raises(GradcheckError, match="gradlint is inconclusive"):
        home.gradcheck(lambda x: torch.sin(1e12 * x), (leaf(5),))


def test_inputs_in_low_precision_are_warned_of():
    inputs = (leaf(3), leaf(3, dtype=torch.float32))
    for home in BOTH:
        with pytest.warns(UserWarning, match=NOT_DOUBLE) as caught:
            assert home.gradcheck(lambda a, b: a * b, inputs, eps=1e-2, atol=1e-2)
        (warning,) = (one for one in caught if "Input #" in str(one.message))
        assert warning.category is UserWarning


@pytest.mark.filterwarnings("error")
def test_inputs_in_double_precision_are_not():
    for dtype in (torch.float64, torch.complex128):
        frozen = torch.ones(3)
        assert gradlint.gradcheck(lambda a, b: a * b, (leaf(3, dtype=dtype), frozen))


def test_a_backward_that_breaks_on_undefined_gradients_is_warned_of():
    class Unguarded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if g is None:
                raise RuntimeError("no gradient given")
            return g * 2

    class Ones(Unguarded):
        @staticmethod
        def backward(ctx, g):
            return torch.ones(3, dtype=torch.float64) if g is None else 2 * g

    for home in BOTH:
        for op in (Unguarded, Ones):
            warned = pytest.warns(UserWarning, match="Backwards compatibility: New undefined grad")
            with warned, pytest.raises(GradcheckError, match="undefined"):
                home.gradcheck(lambda x, op=op: op.apply(x) + 0 * x, (leaf(3),))


#: options beside check_forward_ad → calls of jvp: once per input; twice more each for undefined
#: tangents; three times more each for batches.
COUNTS = [
    ({"check_undefined_grad": False}, 2, 1),
    ({}, 6, 2),
    ({"check_batched_forward_grad": True}, 12, 5),
]


@pytest.mark.parametrize(("options", "of_two", "of_one"), COUNTS)
@pytest.mark.parametrize("fast", [True, False])
def test_jvp_is_called_as_often_as_by_torch(options, of_two, of_one, fast):
    count = [0]

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            if fwd._current_level >= 0:
                assert not x.requires_grad
                assert not y.requires_grad
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, x_t, y_t):
            count[0] += 1
            return x_t, y_t

    for home in BOTH:
        for second, expected in ((leaf(1), of_two), (leaf(1).detach(), of_one)):
            count[0] = 0
            inputs = (leaf(1), second)
            options = {"check_forward_ad": True, "check_backward_ad": False, **options}
            assert home.gradcheck(Op.apply, inputs, fast_mode=fast, **options)
            assert count[0] == expected


def _pairs(x):
    """Eigenvalues of symmetric positive matrices, by an iteration that stops at 1e-9."""
    matrices = x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)
    return torch.lobpcg(matrices, k=2, method="ortho", niter=200, tol=1e-9)[0]


def test_eigenvalues_by_an_iteration_that_stops_early():
    inputs = (leaf(2, 6, 6),)
    for fast in (True, False):
        assert gradlint.gradcheck(_pairs, inputs, fast_mode=fast, check_batched_grad=False)
