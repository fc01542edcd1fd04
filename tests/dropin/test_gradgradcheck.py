"""gradgradcheck: second derivatives."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.function import once_differentiable
from torch.autograd.gradcheck import GradcheckError

import gradlint
from gradlint.dropin.failure import InconclusiveWarning
from tests.dropin.conftest import function, leaf

cube = function(lambda x: x**3, lambda s, g: 3 * s[0] ** 2 * g)
lost = function(lambda x: x**3, lambda s, g: 3 * s[0].detach() ** 2 * g)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g


class NoGraph(Once):
    @staticmethod
    def backward(ctx, g):
        with torch.no_grad():
            return 3 * ctx.saved_tensors[0] ** 2 * g


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gen_non_contig_grad_outputs": True},
        {"check_fwd_over_rev": True},
        {"check_batched_grad": True},
        {"fast_mode": True},
    ],
    ids=str,
)
def test_right_second_derivatives(dtype, options):
    assert gradlint.gradgradcheck(torch.sin, (leaf(4, 3, dtype=dtype),), **options)
    assert gradlint.gradgradcheck(
        lambda a, b: a @ b, (leaf(3, 4, dtype=dtype), leaf(4, 2, dtype=dtype)), **options
    )


@pytest.mark.usefixtures("conclusive")
def test_functions_whose_gradients_are_constant_or_missing():
    assert gradlint.gradgradcheck(lambda x: x * 2, (leaf(3),))
    assert gradlint.gradgradcheck(lambda x: x.sum(), (leaf(3),))
    assert gradlint.gradgradcheck(lambda x, y: x**2, (leaf(3), leaf(3, seed=4)))
    assert gradlint.gradgradcheck(torch.sin, (leaf(3),), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("fn", "opening"),
    [
        (lost, "^Jacobian mismatch for output 0 with respect to input 0,"),
        (Once.apply, "^Jacobian mismatch for output 0 with respect to input 0,"),
        (NoGraph.apply, "^Numerical gradient for function expected to be zero"),
    ],
    ids=["lost", "once", "no graph"],
)
def test_wrong_second_derivatives_fail_as_in_torch(fn, opening):
    for check in (gradlint.gradgradcheck, torch.autograd.gradgradcheck):
        with pytest.raises(GradcheckError, match=opening):
            check(fn, (leaf(4),))
        assert check(fn, (leaf(4),), raise_exception=False) is False


def test_the_reason_is_told():
    with pytest.raises(GradcheckError, match="marked @once_differentiable"):
        gradlint.gradgradcheck(Once.apply, (leaf(4),))
    with pytest.raises(GradcheckError, match="the function checked here is backward") as caught:
        gradlint.gradgradcheck(lost, (leaf(4),))
    assert "once_differentiable" not in str(caught.value)
    assert "backward itself" not in str(caught.value)


def test_a_wrong_first_derivative_is_told_beside():
    wrong = function(lambda x: x**3, lambda s, g: 4 * s[0] ** 2 * g)
    with pytest.warns(InconclusiveWarning, match="backward itself is wrong for input 0"):
        assert gradlint.gradgradcheck(wrong, (leaf(4),))
    both = function(lambda x: x**3, lambda s, g: 4 * s[0].detach() ** 2 * g)
    with pytest.raises(GradcheckError, match="backward itself is wrong for input 0"):
        gradlint.gradgradcheck(both, (leaf(4),))


def test_gen_non_contig_grad_outputs_are_non_contiguous():
    from gradlint.dropin.gradgradcheck import Backward

    backward = Backward(torch.sin, (leaf(4, 3),), 0)
    backward.draw_cotangents(strided=True)
    assert not backward.cotangents[0].is_contiguous()
    backward.draw_cotangents(strided=False)
    assert backward.cotangents[0].is_contiguous()

    seen = set()

    def noting(s, g):
        seen.add(g.is_contiguous())
        return 3 * s[0] ** 2 * g

    noted = function(lambda x: x**3, noting)
    assert gradlint.gradgradcheck(noted, (leaf(4, 3),), gen_non_contig_grad_outputs=True)
    assert False in seen


def test_options_that_exclude_each_other():
    for options in (
        {"check_rev_over_rev": False, "check_undefined_grad": False},
        {"check_rev_over_rev": False, "check_fwd_over_rev": True},
        {
            "check_rev_over_rev": False,
            "check_fwd_over_rev": True,
            "check_undefined_grad": False,
            "check_batched_grad": True,
        },
    ):
        for check in (gradlint.gradgradcheck, torch.autograd.gradgradcheck):
            with pytest.raises(AssertionError):
                check(torch.sin, (leaf(3),), **options)


def test_inputs_are_as_before():
    x = leaf(4)
    before = x.detach().clone()
    assert gradlint.gradgradcheck(torch.sin, (x,))
    assert not gradlint.gradgradcheck(lost, (x,), raise_exception=False)
    assert torch.equal(x, before)
    assert x.grad is None
