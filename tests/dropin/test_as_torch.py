"""What PyTorch's own tests of gradcheck (test/test_autograd.py) expect of it, of both."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad as fwd
from torch.autograd.gradcheck import GradcheckError

import gradlint

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.parametrize("fast", [True, False])]
BOTH = (gradlint, torch.autograd)


def ones(*shape, dtype=torch.float64):
    return torch.ones(shape, dtype=dtype, requires_grad=True)


def hooked(x):
    y = x.clone()
    y.register_hook(lambda grad: grad + 1e-2)
    return y


class Jitter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, jitter):
        ctx.jitter = jitter
        return x

    @staticmethod
    def backward(ctx, grad):
        return Jitter.apply(grad, ctx.jitter) * (1 + torch.rand_like(grad) * ctx.jitter), None


class ToSparse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad.to_sparse()


def grows(x):
    return torch.cat([x, x]) if bool((x >= 1).all()) else x


def narrows(x):
    return x.float() if bool((x >= 1).all()) else x


def refuses_undefined(x):
    def hook(grad):
        if grad is None:
            raise RuntimeError("grad is undefined")

    y = x.clone()
    y.register_hook(hook)
    return y


def other_sparse_dim(x):
    y = x.clone()
    y.register_hook(lambda grad: None if grad is None else grad.to_dense().to_sparse(1))
    return y.to_dense()


def wrong_tangent(x, y):
    if fwd._current_level >= 0:
        primal, tangent = fwd.unpack_dual(y)
        y = fwd.make_dual(primal, tangent * 1.1)
    return x + y, y


#: name → function, inputs, options, exception, pattern.
RAISES = {
    "hook": (
        hooked,
        lambda: (ones(2, 2, dtype=torch.float32),),
        {},
        GradcheckError,
        "Jacobian mismatch for output 0 with respect to input 0",
    ),
    "hook, complex": (
        hooked,
        lambda: (ones(2, 2, dtype=torch.complex128),),
        {},
        GradcheckError,
        "While considering the imaginary part of complex outputs only",
    ),
    "real to complex": (
        lambda x: hooked(torch.complex(x, x)),
        lambda: (ones(2, 2, dtype=torch.float32),),
        {},
        GradcheckError,
        "While considering the imaginary part of complex outputs only",
    ),
    "complex to real": (
        lambda x: hooked(torch.real(x)),
        lambda: (ones(2, 2, dtype=torch.complex128),),
        {},
        GradcheckError,
        "Jacobian mismatch for output 0 with respect to input 0",
    ),
    "not multiplied": (
        hooked,
        lambda: (ones(1),),
        {"atol": 0.1},
        GradcheckError,
        "backward not multiplied by grad_output",
    ),
    "layout": (ToSparse.apply, lambda: (ones(1),), {}, GradcheckError, "grad is incorrect layout"),
    "sparse_dim": (
        other_sparse_dim,
        lambda: (ones(2, 2).to_sparse(),),
        {"atol": 0.1, "masked": True},
        GradcheckError,
        "grad is sparse tensor, but has incorrect sparse_dim",
    ),
    "jitter": (
        lambda x: Jitter.apply(x, 1e-6),
        lambda: (ones(5, 5),),
        {},
        GradcheckError,
        "Backward is not reentrant",
    ),
    "undefined": (
        refuses_undefined,
        lambda: (ones(1),),
        {},
        GradcheckError,
        "Expected backward function to handle undefined output grads",
    ),
    "batched": (
        lambda x: x.to_dense(),
        lambda: (ones(10).to_sparse(),),
        {"check_batched_grad": True, "masked": True},
        GradcheckError,
        "gradcheck or gradgradcheck failed while testing batched gradient",
    ),
    "no graph": (
        lambda x: torch.tensor([x]),
        lambda: (ones(1, dtype=torch.float32),),
        {},
        GradcheckError,
        "Numerical gradient for function expected to be zero",
    ),
    "tangent": (
        wrong_tangent,
        lambda: (ones(2), ones(2)),
        {"check_forward_ad": True},
        GradcheckError,
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 1",
    ),
    "shape": (
        grows,
        lambda: (ones(1),),
        {},
        AssertionError,
        "return outputs with the same shape when inputs are perturbed",
    ),
    "dtype": (
        narrows,
        lambda: (ones(1),),
        {},
        AssertionError,
        "return outputs with the same dtype when inputs are perturbed",
    ),
    "MKLDNN output": (
        lambda x: x.to_mkldnn(),
        lambda: (ones(4, 5, dtype=torch.float32),),
        {},
        ValueError,
        "MKLDNN output is not supported at gradcheck yet",
    ),
}


@pytest.mark.parametrize("name", RAISES)
def test_raises(name, fast):
    fn, inputs, options, error, pattern = RAISES[name]
    if fast and name in ("no graph", "hook, complex", "real to complex", "complex to real"):
        fast = False  # as PyTorch tests them
    for home in BOTH:
        with pytest.raises(error, match=pattern):
            home.gradcheck(fn, inputs(), fast_mode=fast, **options)
        if error is GradcheckError:
            silent = {"fast_mode": fast, "raise_exception": False}
            assert home.gradcheck(fn, inputs(), **silent, **options) is False


def test_the_functions_own_exceptions_escape(fast):
    def raises(x):
        raise RuntimeError("Not a GradcheckError!")

    for home in BOTH:
        for raise_exception in (True, False):
            with pytest.raises(RuntimeError, match="Not a GradcheckError!"):
                home.gradcheck(raises, ones(2), fast_mode=fast, raise_exception=raise_exception)


def test_passes(fast):
    for home in BOTH:
        for fn, inputs, options in (
            (lambda x: x.mul(5), ones(10), {}),
            (lambda x: Jitter.apply(x, 0.0), ones(5, 5), {"nondet_tol": 1e-5}),
            (lambda x: Jitter.apply(x, 1e-6), ones(5, 5), {"nondet_tol": 1e-5}),
            (lambda x: x.to_dense(), ones(10).to_sparse(), {"masked": True}),
            (lambda x, y: (torch.complex(x, y), x + 1), (ones(2, 2), ones(2, 2)), {}),
            (lambda z: (z, torch.real(z)), ones(2, 2, dtype=torch.complex128), {}),
            (lambda x, y: (x + y, y), (ones(2), ones(2)), {"check_forward_ad": True}),
            (lambda x: torch.tensor([]), ones(1), {}),
        ):
            assert home.gradcheck(fn, inputs, fast_mode=fast, **options) is True
        assert home.gradgradcheck(lambda x: x.mul(5), ones(10), fast_mode=fast) is True
        with pytest.raises(RuntimeError, match="Backward is not reentrant"):
            home.gradgradcheck(lambda x: Jitter.apply(x, 1e-12), ones(5, 5), fast_mode=fast)


@pytest.mark.parametrize("forward_bad", [True, False])
@pytest.mark.parametrize("backward_bad", [True, False])
@pytest.mark.parametrize(("forward", "backward"), [(True, True), (True, False), (False, True)])
def test_only_what_is_asked_for_is_run(fast, forward, backward, forward_bad, backward_bad):
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            if backward_bad:
                raise RuntimeError("FAIL BWD")
            return 2 * grad

        @staticmethod
        def jvp(ctx, tangent):
            if forward_bad:
                raise RuntimeError("FAIL FWD")
            return 2 * tangent

    options = {
        "check_forward_ad": forward,
        "check_batched_forward_grad": forward,
        "check_backward_ad": backward,
        "check_undefined_grad": backward,
        "check_batched_grad": backward,
        "fast_mode": fast,
    }
    expected = "BWD" if backward and backward_bad else "FWD" if forward and forward_bad else ""
    for home in BOTH:
        if expected:
            with pytest.raises(RuntimeError, match=f"FAIL {expected}"):
                home.gradcheck(Op.apply, (ones(2),), **options)
        else:
            assert home.gradcheck(Op.apply, (ones(2),), **options)
