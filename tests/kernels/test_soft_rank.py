"""soft_rank and its derivative, the only one it has."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

ops = torch.ops.gradlint

#: Errors of float32 sums, and roundings of what is returned.
BOUNDS = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}

SHAPES = [(7,), (3, 5), (2, 3, 16), (33, 17), (2, 700)]


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def reference(x: Tensor, temperature: float) -> Tensor:
    return 0.5 + torch.sigmoid((x.unsqueeze(-1) - x.unsqueeze(-2)) / temperature).sum(-1)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, cotangent = drawn(*shape, dtype=dtype).requires_grad_(), drawn(*shape, dtype=dtype, seed=1)
    exact = x.detach().double().requires_grad_()
    y, expected = ops.soft_rank(x, 0.5), reference(exact, 0.5)
    got = [y, *torch.autograd.grad(y, x, cotangent)]
    wanted = [expected, *torch.autograd.grad(expected, exact, cotangent.double())]
    for left, right in zip(got, wanted, strict=True):
        assert left.dtype == dtype
        assert_close(left.double(), right, rtol=0, atol=BOUNDS[dtype] * right.abs().max().item())


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 5), (2, 2, 3)])
def test_derivative(shape: tuple[int, ...]) -> None:
    assert gradcheck(lambda x: ops.soft_rank(x, 0.7), (drawn(*shape).requires_grad_(),))


def test_a_second_derivative_is_refused() -> None:
    x = drawn(3, 5).requires_grad_()
    (grad,) = torch.autograd.grad(ops.soft_rank(x, 1.0).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="soft_rank_backward is not implemented"):
        torch.autograd.grad(grad.sum(), x)


def test_one_element_is_first() -> None:
    assert_close(ops.soft_rank(torch.tensor(3.0), 1.0), torch.tensor(1.0))


@pytest.mark.parametrize(
    ("row", "ranks"),
    [
        ([3.0, -1.0, 2.0], [3.0, 1.0, 2.0]),
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        ([math.inf, 0.0, math.inf, -math.inf], [3.5, 2.0, 3.5, 1.0]),
        ([3e38, -3e38, 3e38], [2.5, 1.0, 2.5]),
    ],
)
@pytest.mark.parametrize("temperature", [1e-3, 1e-60])
def test_near_zero_temperature_ranks_are_whole(
    row: list[float], ranks: list[float], temperature: float
) -> None:
    x = torch.tensor(row, requires_grad=True)
    assert_close(ops.soft_rank(x, temperature), torch.tensor(ranks))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
def test_empty(shape: tuple[int, ...]) -> None:
    x = drawn(*shape).requires_grad_()
    y = ops.soft_rank(x, 1.0)
    assert y.shape == shape
    assert torch.autograd.grad(y.sum(), x)[0].shape == shape


def test_any_strides() -> None:
    x = drawn(6, 4, 5).permute(2, 0, 1)[::2].requires_grad_()
    y = ops.soft_rank(x, 0.7)
    assert_close(y, reference(x, 0.7))
    cotangent = drawn(4, seed=1).expand(y.shape)
    got = torch.autograd.grad(y, x, cotangent)
    assert_close(got, torch.autograd.grad(reference(x, 0.7), x, cotangent))


def test_opcheck() -> None:
    x = drawn(4, 5).requires_grad_()
    torch.library.opcheck(ops.soft_rank.default, (x, 0.7))
    torch.library.opcheck(ops.soft_rank_backward.default, (x.detach(), x.detach(), 0.7))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.soft_rank(x.long(), 1.0), TypeError, "`x` must be float64.*got Long"),
        (lambda x: ops.soft_rank(x, 0.0), ValueError, "`temperature`.*positive.*got 0"),
        (lambda x: ops.soft_rank(x, -1.0), ValueError, "`temperature`.*positive.*got -1"),
        (
            lambda x: ops.soft_rank_backward(x[0], x, 1.0),
            RuntimeError,
            r"`grad_output` must have the shape of `x`, \[3, 5\], got \[5\]",
        ),
    ],
)
def test_errors(call: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(drawn(3, 5))
