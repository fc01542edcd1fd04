"""gumbel_softmax, soft and hard, its derivative and the derivative of that."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from tests.kernels.support.traced_backward import traced_backward

ops = torch.ops.gradlint

#: Errors of float32 sums, and roundings of what is returned.
BOUNDS = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}

#: No axis, one row, several, packs or not, held in registers or read again, and many rows.
SHAPES = [(), (7,), (3, 5), (2, 3, 16), (5, 8), (33, 17), (3000, 12), (2, 40007), (2, 4100)]

INF, NAN = math.inf, math.nan


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def leaves(*shape: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    logits, noise = (drawn(*shape, dtype=dtype, seed=seed) for seed in (0, 1))
    return (2 * logits).requires_grad_(), noise.requires_grad_()


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    logits, noise = leaves(*shape, dtype=dtype)
    cotangent = drawn(*shape, dtype=dtype, seed=2)
    exact = [t.detach().double().requires_grad_() for t in (logits, noise)]
    expected = torch.softmax((exact[0] + exact[1]) / 0.7, -1)
    wanted = torch.autograd.grad(expected, exact, cotangent.double())
    soft, hard = (ops.gumbel_softmax(logits, noise, 0.7, hard) for hard in (False, True))
    assert_close(soft.double(), expected, rtol=BOUNDS[dtype], atol=BOUNDS[dtype])
    assert torch.equal(hard.detach(), one_hot(exact[0] + exact[1]).to(dtype))
    for y in (soft, hard):
        got = torch.autograd.grad(y, (logits, noise), cotangent)
        for left, right in zip(got, wanted, strict=True):
            assert left.dtype == dtype
            scale = max(right.abs().max().item(), 1e-3)
            assert_close(left.double(), right, rtol=0, atol=BOUNDS[dtype] * scale)


def one_hot(values: Tensor) -> Tensor:
    if values.dim() == 0:
        return torch.ones(())
    return torch.zeros_like(values).scatter(-1, values.argmax(-1, keepdim=True), 1.0)


@pytest.mark.parametrize("shape", [(), (4,), (3, 5), (2, 2, 8), (2, 19)])
def test_derivatives(shape: tuple[int, ...]) -> None:
    logits, noise = leaves(*shape)
    for given in ((logits, noise), (logits, noise.detach()), (logits.detach(), noise)):
        assert gradcheck(lambda a, b: ops.gumbel_softmax(a, b, 0.7), given)
        assert gradgradcheck(lambda a, b: ops.gumbel_softmax(a, b, 0.7), given)


def test_hard_has_the_soft_second_derivatives() -> None:
    logits, noise = leaves(3, 5)
    cotangent, direction = drawn(3, 5, seed=2).requires_grad_(), drawn(3, 5, seed=3)
    results = []
    for hard in (False, True):
        y = ops.gumbel_softmax(logits, noise, 0.7, hard)
        (grad,) = torch.autograd.grad(y, logits, cotangent, create_graph=True)
        results.append(torch.autograd.grad(grad, (logits, noise, cotangent), direction))
    assert_close(results[0], results[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("row", "soft", "hard"),
    [
        ([-INF, 1.0, 2.0, -INF], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]),
        ([2.0, 2.0, 2.0, 2.0], [0.25] * 4, [1.0, 0.0, 0.0, 0.0]),
        ([1e38, -1e38, 3e38, 3e38], [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 1.0, 0.0]),
        ([-INF] * 4, [NAN] * 4, [NAN] * 4),
        ([INF, 0.0, 0.0, 0.0], [NAN] * 4, [NAN] * 4),
        ([NAN, 0.0, 0.0, 0.0], [NAN] * 4, [NAN] * 4),
    ],
)
@pytest.mark.parametrize("temperature", [1e-3, 1e-60])
def test_extremes(
    row: list[float], soft: list[float], hard: list[float], temperature: float
) -> None:
    logits, noise = torch.tensor(row), torch.zeros(4)
    got = ops.gumbel_softmax(logits, noise, temperature)
    assert_close(got, torch.tensor(soft), equal_nan=True)
    got = ops.gumbel_softmax(logits, noise, temperature, True)
    assert_close(got, torch.tensor(hard), equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
@pytest.mark.parametrize("hard", [False, True])
def test_empty(shape: tuple[int, ...], hard: bool) -> None:
    logits, noise = leaves(*shape)
    y = ops.gumbel_softmax(logits, noise, 1.0, hard)
    assert y.shape == shape
    assert torch.autograd.grad(y.sum(), logits)[0].shape == shape


def test_any_strides() -> None:
    logits = drawn(6, 4, 5).permute(2, 0, 1)[::2].requires_grad_()
    noise = drawn(4, seed=1).expand(3, 6, 4)
    y = ops.gumbel_softmax(logits, noise, 0.7)
    expected = torch.softmax((logits + noise) / 0.7, -1)
    assert_close(y, expected)
    cotangent = drawn(1, seed=2).expand(y.shape)
    got = torch.autograd.grad(y.square(), logits, cotangent)
    assert_close(got, torch.autograd.grad(expected.square(), logits, cotangent))


@pytest.mark.parametrize("hard", [False, True])
def test_opcheck(hard: bool) -> None:
    logits, noise = leaves(4, 5)
    torch.library.opcheck(ops.gumbel_softmax.default, (logits, noise.detach(), 0.7, hard))
    y = ops.gumbel_softmax(logits, noise, 0.7).detach().requires_grad_()
    torch.library.opcheck(ops.gumbel_softmax_backward.default, (logits, y, 0.7))


@pytest.mark.parametrize("hard", [False, True])
def test_compiled_autograd(hard: bool) -> None:
    logits, noise = leaves(4, 5)
    expected = torch.autograd.grad((ops.gumbel_softmax(logits, noise, 0.7) * noise).sum(), logits)
    with traced_backward() as graphs:
        (ops.gumbel_softmax(logits, noise, 0.7, hard) * noise.detach()).sum().backward()
    assert graphs
    assert_close(logits.grad, expected[0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.gumbel_softmax(x.long(), x, 1.0), TypeError, "`logits`.*got Long"),
        (lambda x: ops.gumbel_softmax(x, x.float(), 1.0), TypeError, "`noise`.*got Float"),
        (lambda x: ops.gumbel_softmax(x, x[0], 1.0), RuntimeError, r"`noise`.*\[3, 5\], got \[5\]"),
        (lambda x: ops.gumbel_softmax(x, x, 0.0), ValueError, "`temperature`.*positive.*got 0"),
        (lambda x: ops.gumbel_softmax(x, x, NAN), ValueError, "`temperature`.*positive.*got nan"),
    ],
)
def test_errors(call: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(drawn(3, 5))
