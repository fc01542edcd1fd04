"""layer_norm, its derivative and the derivative of that."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

from tests.kernels.support.traced_backward import traced_backward

ops = torch.ops.gradlint

#: Errors of float32 sums, and roundings of what is returned.
BOUNDS = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}

#: One row, several, packs or not, held in registers or read again, and many rows.
SHAPES = [
    *((7,), (3, 5), (2, 3, 16), (5, 8), (33, 17)),
    *((3000, 12), (3000, 8), (3000, 4), (2, 40007), (2, 2, 4100)),
]


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def arguments(
    *shape: int, weight: bool, bias: bool, dtype: torch.dtype = torch.float64
) -> list[Tensor | None]:
    x = 2 * drawn(*shape, dtype=dtype) + 1
    w = drawn(shape[-1], dtype=dtype, seed=1) if weight else None
    b = drawn(shape[-1], dtype=dtype, seed=2) if bias else None
    return [None if t is None else t.requires_grad_() for t in (x, w, b)]


def tensors(values: list[Tensor | None]) -> list[Tensor]:
    return [value for value in values if value is not None]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    for weight, bias in itertools.product((True, False), repeat=2):
        given = arguments(*shape, weight=weight, bias=bias, dtype=dtype)
        exact = [None if t is None else t.detach().double().requires_grad_() for t in given]
        cotangent = drawn(*shape, dtype=dtype, seed=3)
        y = ops.layer_norm(*given, 1e-5)
        expected = functional.layer_norm(exact[0], shape[-1:], *exact[1:], 1e-5)
        got = [y, *torch.autograd.grad(y, tensors(given), cotangent)]
        wanted = [
            expected,
            *torch.autograd.grad(expected, tensors(exact), cotangent.double()),
        ]
        for left, right in zip(got, wanted, strict=True):
            assert left.dtype == dtype
            scale = right.abs().max().item()
            assert_close(left.double(), right, rtol=0, atol=BOUNDS[dtype] * scale)


@pytest.mark.parametrize("shape", [(3, 5), (4,), (2, 2, 8), (2, 19)])
@pytest.mark.parametrize("weight", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_derivatives(shape: tuple[int, ...], weight: bool, bias: bool) -> None:
    given = arguments(*shape, weight=weight, bias=bias)

    def op(*values: Tensor) -> Tensor:
        rest = list(values)
        return ops.layer_norm(*(None if t is None else rest.pop(0) for t in given), 1e-2)

    assert gradcheck(op, tensors(given))
    assert gradgradcheck(op, tensors(given))


def test_what_needs_no_gradient_gets_none() -> None:
    x, w, b = arguments(3, 5, weight=True, bias=True)
    reference = torch.autograd.grad(ops.layer_norm(x, w, b).square().sum(), (x, w, b))
    for position in range(3):
        given = [t.detach() for t in (x, w, b)]
        given[position].requires_grad_()
        ops.layer_norm(*given).square().sum().backward()
        assert_close(given[position].grad, reference[position], rtol=0, atol=0)
        assert gradgradcheck(ops.layer_norm, tuple(given))


def test_any_strides() -> None:
    x = drawn(6, 4, 5).permute(2, 0, 1)[::2].requires_grad_()
    w = drawn(8)[::2]
    y = ops.layer_norm(x, w)
    assert_close(y, functional.layer_norm(x, (4,), w))
    cotangent = drawn(1).expand(y.shape)
    got = torch.autograd.grad(y, x, cotangent)
    assert_close(got, torch.autograd.grad(functional.layer_norm(x, (4,), w), x, cotangent))


def test_unaligned_rows() -> None:
    for dtype in BOUNDS:
        x = drawn(33, dtype=dtype)[1:].view(4, 8)
        assert_close(ops.layer_norm(x), ops.layer_norm(x.clone()), rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,), (2, 0, 3)])
def test_empty(shape: tuple[int, ...]) -> None:
    given = arguments(*shape, weight=True, bias=True)
    y = ops.layer_norm(*given)
    assert y.shape == shape
    for value, grad in zip(given, torch.autograd.grad(y.sum(), given), strict=True):
        assert_close(grad, torch.zeros_like(value))


def test_rows_far_from_zero_keep_their_variance() -> None:
    x = drawn(4, 1000) * 0.25 + 1e4
    exact = functional.layer_norm(x.float().double(), (1000,))
    assert_close(ops.layer_norm(x.float()).double(), exact, rtol=0, atol=5e-3)


def test_rows_of_one_value_are_the_bias() -> None:
    x = torch.full((3, 8), 7.0, requires_grad=True)
    b = torch.arange(8.0)
    y = ops.layer_norm(x, None, b)
    assert_close(y, b.expand(3, 8), rtol=0, atol=0)
    assert torch.autograd.grad(y[0, 0], x)[0].isfinite().all()


def test_the_same_bits_on_each_call() -> None:
    x, w, b = arguments(5000, 12, weight=True, bias=True, dtype=torch.float32)
    results = []
    for _ in range(2):
        y = ops.layer_norm(x, w, b)
        results.append([y, *torch.autograd.grad(y, (x, w, b), y.detach())])
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)


def test_opcheck() -> None:
    x, w, b = arguments(4, 5, weight=True, bias=True)
    torch.library.opcheck(ops.layer_norm.default, (x, w, b, 1e-5))
    torch.library.opcheck(ops.layer_norm.default, (x,))
    _, mean, rstd = ops.layer_norm_forward(x.detach(), None, None, 1e-5)
    g = drawn(4, 5).requires_grad_()
    for wanted in ([True, True, True], [True, False, False], [False, True, True]):
        arguments_ = (g, x.detach(), mean, rstd, w.detach(), wanted)
        torch.library.opcheck(ops.layer_norm_backward.default, arguments_)


def test_compiled_autograd() -> None:
    x, w, b = arguments(4, 5, weight=True, bias=True)
    expected = torch.autograd.grad(ops.layer_norm(x, w, b).square().sum(), (x, w, b))
    with traced_backward() as graphs:
        ops.layer_norm(x, w, b).square().sum().backward()
    assert graphs
    assert_close([x.grad, w.grad, b.grad], list(expected))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.layer_norm(x.long()), TypeError, "`x` must be float64.*got Long"),
        (lambda x: ops.layer_norm(x.sum()), RuntimeError, "`x` must have at least one axis"),
        (lambda x: ops.layer_norm(x, x[0, 1:]), RuntimeError, r"`weight`.*\[5\].*got \[4\]"),
        (lambda x: ops.layer_norm(x, None, x), RuntimeError, r"`bias`.*\[5\].*got \[3, 5\]"),
        (lambda x: ops.layer_norm(x, x[0].float()), TypeError, "dtype of `x`.*got Float"),
        (lambda x: ops.layer_norm(x, x[0].to("meta")), RuntimeError, "device of `x`.*got meta"),
        (lambda x: ops.layer_norm(x, eps=0.0), ValueError, "`eps` must be a positive.*got 0"),
    ],
)
def test_errors(call: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(drawn(3, 5))
