"""check_forward_ad and check_batched_forward_grad."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import gradlint
from gradlint.dropin import _torch
from tests.dropin.conftest import leaf, square


def _op(backward_factor, jvp_factor):
    class Op(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return backward_factor * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return jvp_factor * ctx.saved_tensors[0] * t

    return Op.apply


FORWARD = {"check_forward_ad": True}
ONLY = {"check_forward_ad": True, "check_backward_ad": False}
ALL = {**FORWARD, "check_batched_grad": True, "check_batched_forward_grad": True}


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", [FORWARD, ONLY, ALL], ids=["forward", "only", "all"])
def test_a_right_jvp_passes(dtype, options):
    assert gradlint.gradcheck(_op(2, 2), (leaf(40, dtype=dtype),), **options)
    assert gradlint.gradcheck(
        lambda a, b: a @ b, (leaf(3, 4, dtype=dtype), leaf(4, 2, dtype=dtype)), **options
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", [FORWARD, ONLY], ids=["forward", "only"])
def test_a_wrong_jvp_fails(dtype, options):
    with pytest.raises(
        GradcheckError,
        match=r"^Jacobian computed with forward mode mismatch for output 0 with respect to",
    ) as caught:
        gradlint.gradcheck(_op(2, 3), (leaf(4, dtype=dtype),), **options)
    assert caught.match("worst at index")


def test_only_forward_mode_does_not_look_at_backward():
    assert gradlint.gradcheck(_op(3, 2), (leaf(4),), **ONLY)
    assert not gradlint.gradcheck(_op(3, 2), (leaf(4),), **FORWARD, raise_exception=False)


def test_one_wrong_element_of_many_is_seen():
    def spoiled(x):
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_forward(x)
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * ctx.saved_tensors[0] * g

            @staticmethod
            def jvp(ctx, t):
                pushed = 2 * ctx.saved_tensors[0] * t
                pushed[1234] = 0.0
                return pushed

        return Op.apply(x)

    with pytest.raises(GradcheckError, match=r"worst at index \[1234\]"):
        gradlint.gradcheck(spoiled, (leaf(5000),), **FORWARD)


def test_complex_inputs_name_the_part():
    z = leaf(4, dtype=torch.complex128)
    assert gradlint.gradcheck(lambda z: z * z, (z,), **ALL)

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_forward(z)
            return z * z

        @staticmethod
        def jvp(ctx, t):
            return 2 * ctx.saved_tensors[0] * t.conj()

    with pytest.raises(
        GradcheckError, match=r"^While considering the imaginary part of complex inputs only, Jac"
    ):
        gradlint.gradcheck(Op.apply, (z,), **ONLY)


def test_no_jvp_raises_as_in_torch():
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        with pytest.raises(NotImplementedError, match="You must implement the jvp"):
            check(square, (leaf(4),), check_forward_ad=True)


def test_options_that_exclude_each_other():
    for options in (
        {"check_backward_ad": False},
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
        {"check_batched_forward_grad": True},
    ):
        for check in (gradlint.gradcheck, torch.autograd.gradcheck):
            with pytest.raises(AssertionError):
                check(torch.sin, (leaf(3),), **options)


def test_an_input_that_is_a_view_stays_one():
    """``as_strided`` reaches elements of the storage that the view leaves out."""

    def beyond(x):
        return torch.as_strided(x, (2, 2), (1, 2), storage_offset=7) * 3

    for home in (gradlint, torch.autograd):
        x = leaf(12).detach()[2:8].requires_grad_()
        assert home.gradcheck(beyond, (x,), **FORWARD)
        assert home.gradgradcheck(beyond, (x,), check_fwd_over_rev=True)
        with pytest.raises(GradcheckError, match="can access memory outside of `tensor`"):
            home.gradcheck(beyond, (x,), **ALL)

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return beyond(x)

        @staticmethod
        def jvp(ctx, t):
            return 4 * torch.as_strided(t, (2, 2), (1, 2), storage_offset=7)

    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradlint.gradcheck(Op.apply, (leaf(12).detach()[2:8].requires_grad_(),), **ONLY)


def _with_tangent(spoil):
    """x², whose jvp returns ``spoil`` in place of its second element."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            found = 2 * ctx.saved_tensors[0] * t
            return torch.where(torch.arange(4) == 1, spoil, found)

    return Op.apply


@pytest.mark.parametrize("options", [FORWARD, ONLY], ids=["forward", "only"])
@pytest.mark.parametrize("spoil", [float("nan"), float("inf")])
def test_a_tangent_that_is_not_finite_fails(options, spoil):
    for home in (gradlint, torch.autograd):
        with pytest.raises(GradcheckError, match="forward mode mismatch for output 0") as caught:
            home.gradcheck(_with_tangent(spoil), (leaf(4),), **options)
    with pytest.raises(GradcheckError) as caught:
        gradlint.gradcheck(_with_tangent(spoil), (leaf(4),), **options)
    assert caught.match(rf"J·u of output 0 is {spoil} at index \[1\] \(1 of 4 elements")


def test_an_output_that_is_not_finite_fails_by_forward_mode_alone():
    for home in (gradlint, torch.autograd):
        with pytest.raises(GradcheckError, match="forward mode mismatch for output 0"):
            home.gradcheck(lambda x: (-x.abs()).log(), (leaf(3),), **ONLY)


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("options", [FORWARD, ONLY], ids=["forward", "only"])
def test_constants_at_infinity_pass(options):
    mask = torch.tensor([True, False, False])
    assert gradlint.gradcheck(
        lambda x: (x * x).masked_fill(mask, -float("inf")), (leaf(3),), **options
    )


def test_what_cannot_be_measured_is_left_to_torch():
    def noise(x):
        return torch.sin(1e12 * x)

    for home in (gradlint, torch.autograd):
        with pytest.raises(GradcheckError, match="forward mode mismatch for output 0") as caught:
            home.gradcheck(noise, (leaf(5),), **ONLY)
        if home is gradlint:
            assert caught.match("gradlint is inconclusive")


def test_what_torch_cannot_afford_is_warned_of(monkeypatch):
    monkeypatch.setattr(_torch, "LARGEST_JACOBIAN", 1)
    with pytest.warns(gradlint.InconclusiveWarning, match="forward mode of input 0: .*Jacobians"):
        assert gradlint.gradcheck(lambda x: torch.sin(1e12 * x), (leaf(5),), **ONLY)
