"""Elementwise operators where numbers are large, infinite, NaN, or at a kink."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import grad
from torch.nn import functional
from torch.testing import assert_close

ops = torch.ops.gradlint
inf, nan = math.inf, math.nan
Unary = Callable[[Tensor], Tensor]


def own(name: str, *numbers: float) -> Unary:
    """The operator, looked up when it is called: the library is loaded after this module is."""
    return lambda x: getattr(ops, name)(x, *numbers)


def derivatives(operator: Unary, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """y, y′ and y″ at each element of x."""
    x = x.detach().requires_grad_()
    y = operator(x)
    (first,) = grad(y.sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    return y.detach(), first.detach(), second


# x, y, y′, y″: limits where x is infinite or its square overflows
LIMITS: dict[str, tuple[Unary, list[tuple[float, float, float, float]]]] = {
    "gelu": (
        own("gelu"),
        [(inf, inf, 1, 0), (-inf, 0, 0, 0), (1e20, 1e20, 1, 0), (-1e20, 0, 0, 0)],
    ),
    "silu": (
        own("silu"),
        [(inf, inf, 1, 0), (-inf, 0, 0, 0), (3e38, 3e38, 1, 0), (-3e38, 0, 0, 0)],
    ),
    "scaled_sigmoid": (
        own("scaled_sigmoid", 1e30),
        [(inf, 1, 0, 0), (-inf, 0, 0, 0), (1e30, 1, 0, 0), (-1e30, 0, 0, 0)],
    ),
    "exp": (own("exp"), [(inf, inf, inf, inf), (-inf, 0, 0, 0), (1000, inf, inf, inf)]),
    "relu": (own("relu"), [(inf, inf, 1, 0), (-inf, 0, 0, 0), (nan, nan, 1, 0)]),
    "clipped_relu": (
        own("clipped_relu", 6.0),
        [(inf, 6, 0, 0), (-inf, 0, 0, 0), (nan, nan, 1, 0)],
    ),
    "soft_threshold": (
        own("soft_threshold", 0.5),
        [(inf, inf, 1, 0), (-inf, -inf, 1, 0), (nan, nan, 1, 0)],
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    operator, rows = LIMITS[name]
    x, *expected = torch.tensor(rows, dtype=torch.float32).T
    for got, wanted in zip(derivatives(operator, x), expected, strict=True):
        assert_close(got, wanted, equal_nan=True)


@pytest.mark.parametrize("name", ["gelu", "silu", "exp", "square"])
def test_nan_stays_nan(name: str) -> None:
    y, first, _ = derivatives(own(name), torch.tensor([nan]))
    assert y.isnan().all()
    assert first.isnan().all()


# x, then the gradient there: 0 at a kink, as PyTorch's
KINKS: dict[str, tuple[Unary, Unary, list[float]]] = {
    "relu": (own("relu"), torch.relu, [0.0, -0.0]),
    "clipped_relu": (own("clipped_relu", 6.0), functional.relu6, [0.0, 6.0, 3.0, 7.0]),
    "soft_threshold": (
        own("soft_threshold", 0.5),
        lambda x: functional.softshrink(x, 0.5),
        [-0.5, 0.0, 0.5, 0.75],
    ),
    "add_relu": (lambda x: ops.add_relu(x, -2 * x), lambda x: torch.relu(-x), [0.0, 1.0, -1.0]),
}


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_kinks_as_pytorch(name: str, dtype: torch.dtype) -> None:
    operator, theirs, places = KINKS[name]
    x = torch.tensor(places, dtype=dtype, requires_grad=True)
    assert_close(operator(x), theirs(x))
    assert_close(grad(operator(x).sum(), x), grad(theirs(x).sum(), x))


def test_no_kink_without_a_threshold() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = ops.soft_threshold(x, 0.0)
    assert_close(y, x)
    assert_close(grad(y.sum(), x)[0], torch.ones(3))


def test_what_does_not_pass_leaves_no_nan() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    (got,) = grad(ops.relu(x), x, torch.tensor([inf, inf]))
    assert_close(got, torch.tensor([0.0, inf]))


def test_sign_has_a_straight_through_gradient() -> None:
    x = torch.tensor([-2.0, -1.0, -0.5, 0.0, 1.0, 1.5, nan, inf], dtype=torch.float64)
    x.requires_grad_()
    v = torch.arange(1.0, 9.0, dtype=torch.float64, requires_grad=True)
    y = ops.sign_ste(x)
    assert_close(y, torch.sign(x))
    (first,) = grad(y, x, v, create_graph=True)
    passes = torch.tensor([0.0, 1, 1, 1, 1, 0, 0, 0], dtype=torch.float64)
    assert_close(first, v * passes)
    of_x, of_v = grad(first, (x, v), 3 * torch.ones_like(x))
    assert_close(of_x, torch.zeros_like(x))
    assert_close(of_v, 3 * passes)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gelu_keeps_its_digits_in_the_tail(dtype: torch.dtype) -> None:
    """1 + erf(x/√2) has none left from -8 on in float64, from -6 on in float32."""
    x = torch.linspace(-12.0, 4.0, 1601, dtype=torch.float64).to(dtype)
    exact = x.double() * torch.special.erfc(-x.double() / math.sqrt(2)) / 2
    digits = {torch.float64: 2e-13, torch.float32: 3e-5}[dtype]
    assert_close(ops.gelu(x).double(), exact, rtol=digits, atol=0.0)


def test_half_sums_and_products_are_rounded_once() -> None:
    """All 65536 numbers of the type, against float32 rounded to it."""
    for dtype in (torch.float16, torch.bfloat16):
        every = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(dtype)
        wide = every.float()
        pairs = {
            "square": (ops.square(every), wide * wide),
            "scale": (ops.scale(every, 0.3), wide * 0.3),
            "silu": (ops.silu(every), ops.silu(wide)),
            "add_relu": (ops.add_relu(every, every.flip(0)), torch.relu(wide + wide.flip(0))),
        }
        for got, expected in pairs.values():
            assert_close(got, expected.to(dtype), rtol=0.0, atol=0.0, equal_nan=True)
