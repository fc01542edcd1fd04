"""batch_norm, its derivative and the derivative of that."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

from tests.kernels.support.traced_backward import traced_backward

ops = torch.ops.gradlint

#: Errors of float32 sums, and roundings of what is returned.
BOUNDS = {torch.float64: 1e-11, torch.float32: 4e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}

#: Channels down columns and along runs, short, long and in several parts.
SHAPES = [(3, 5), (33, 17), (3, 4, 2), (5, 3, 7, 5), (2, 3, 40), (2, 2, 70, 101), (3000, 4)]


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def reference(x: Tensor, eps: float = 1e-5) -> Tensor:
    return functional.batch_norm(x, None, None, training=True, eps=eps)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = (2 * drawn(*shape) + 5).to(dtype).requires_grad_()
    exact = x.detach().double().requires_grad_()
    cotangent = drawn(*shape, dtype=dtype, seed=1)
    y, expected = ops.batch_norm(x), reference(exact)
    got = [y, *torch.autograd.grad(y, x, cotangent)]
    wanted = [expected, *torch.autograd.grad(expected, exact, cotangent.double())]
    for left, right in zip(got, wanted, strict=True):
        assert left.dtype == dtype
        scale = right.abs().max().item()
        assert_close(left.double(), right, rtol=0, atol=BOUNDS[dtype] * scale)


@pytest.mark.parametrize("shape", [(3, 5), (7, 2), (4, 2, 3), (2, 2, 35), (2, 1, 5, 8)])
def test_derivatives(shape: tuple[int, ...]) -> None:
    x = drawn(*shape).requires_grad_()
    assert gradcheck(lambda x: ops.batch_norm(x, 1e-2), (x,))
    assert gradgradcheck(lambda x: ops.batch_norm(x, 1e-2), (x,))


def test_one_value_a_channel_is_zero() -> None:
    x = drawn(1, 3).requires_grad_()
    y = ops.batch_norm(x)
    assert torch.equal(y, torch.zeros(1, 3, dtype=torch.float64))
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], y)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3, 0), (0, 0)])
def test_empty(shape: tuple[int, ...]) -> None:
    x = drawn(*shape).requires_grad_()
    y = ops.batch_norm(x)
    assert y.shape == shape
    assert torch.autograd.grad(y.sum(), x)[0].shape == shape


def test_any_strides() -> None:
    x = drawn(6, 4, 5).permute(2, 0, 1).requires_grad_()
    y = ops.batch_norm(x)
    assert_close(y, reference(x))
    cotangent = drawn(1).expand(y.shape)
    got = torch.autograd.grad(y.square(), x, cotangent)
    assert_close(got, torch.autograd.grad(reference(x).square(), x, cotangent))


@pytest.mark.parametrize("shape", [(5000, 2), (3, 2, 100, 100)])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_channels_far_from_zero_keep_their_variance(shape: tuple[int, ...], offset: float) -> None:
    """What the mean is rounded by, in float32, is added to each element."""
    x = (drawn(*shape) + offset).float()
    rounding = offset * 2.0**-24
    _, _, rstd = ops.batch_norm_forward(x, 1e-5)
    expected = reference(x.double())
    assert_close(ops.batch_norm(x).double(), expected, rtol=5e-4, atol=2 * rounding)
    variance = x.double().transpose(0, 1).reshape(2, -1).var(1, correction=0)
    assert_close(rstd.double().pow(-2), variance, rtol=1e-5 + 2 * rounding**2, atol=1e-5)


@pytest.mark.parametrize("shape", [(60000, 2), (5000, 2), (3, 2, 100, 100), (4, 2, 4000)])
@pytest.mark.parametrize("outlier", [1e2, 1e4, -1e7])
def test_an_outlier_in_front_spoils_nothing(shape: tuple[int, ...], outlier: float) -> None:
    """It is what the sums are shifted by."""
    x = drawn(*shape).float()
    x[0].view(2, -1)[:, 0] = outlier
    _, mean, rstd = ops.batch_norm_forward(x, 1e-5)
    exact = x.double().transpose(0, 1).reshape(2, -1)
    variance, expected = torch.var_mean(exact, 1, correction=0)
    assert_close(rstd.double(), (variance + 1e-5).rsqrt(), rtol=4e-7, atol=0)
    assert_close(mean.double(), expected, rtol=2e-7, atol=1e-7 * exact.std().item())
    assert_close(ops.batch_norm(x).double(), reference(x.double()), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(5000, 2), (3, 2, 100, 100)])
def test_channels_of_one_large_value_are_zero(shape: tuple[int, ...]) -> None:
    x = torch.full(shape, 1e6 + 0.0625, requires_grad=True)
    y, mean, rstd = ops.batch_norm_forward(x.detach(), 1e-5)
    assert torch.equal(y, torch.zeros(shape))
    assert torch.equal(mean, x.detach()[0].view(2, -1)[:, 0])
    assert_close(rstd, torch.full((2,), 1e-5).rsqrt())


def test_opcheck() -> None:
    x = drawn(4, 3, 5).requires_grad_()
    torch.library.opcheck(ops.batch_norm.default, (x,))
    _, mean, rstd = ops.batch_norm_forward(x.detach(), 1e-5)
    g = drawn(4, 3, 5, seed=1).requires_grad_()
    torch.library.opcheck(ops.batch_norm_backward.default, (g, x.detach(), mean, rstd))


def test_compiled_autograd() -> None:
    x = drawn(4, 3, 5).requires_grad_()
    (expected,) = torch.autograd.grad(ops.batch_norm(x).pow(3).sum(), x)
    with traced_backward() as graphs:
        ops.batch_norm(x).pow(3).sum().backward()
    assert graphs
    assert_close(x.grad, expected)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.batch_norm(x.long()), TypeError, "`x` must be float64.*got Long"),
        (lambda x: ops.batch_norm(x[0]), RuntimeError, r"shape \(N, C, \*\).*got \[5\]"),
        (lambda x: ops.batch_norm(x, -1.0), ValueError, "`eps` must be a positive.*got -1"),
        (
            lambda x: ops.batch_norm_backward(x.mT, x, x[0], x[0]),
            RuntimeError,
            r"`grad_output` must have the shape of `x`, \[3, 5\], got \[5, 3\]",
        ),
        (
            lambda x: ops.batch_norm_backward(x, x, x[:, 0], x[0]),
            RuntimeError,
            r"`mean` must have the shape \[5\].*got \[3\]",
        ),
    ],
)
def test_errors(call: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(drawn(3, 5))
