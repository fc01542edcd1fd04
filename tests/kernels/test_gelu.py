"""GELU's error in units of the last place, down to where it underflows."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import grad

from gradlint.native.roots import kernels_root
from tests.kernels.support.fit_normal_tail import KINDS, fit, relative_error

ops = torch.ops.gradlint

#: Beyond it e^(−x²/2) is subnormal in float32, and has fewer digits.
NORMAL = 13.2


def derivatives(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """y, y′ and y″ at each element."""
    x = x.detach().requires_grad_()
    y = ops.gelu(x)
    (first,) = grad(y.sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    return y.detach(), first.detach(), second


def exact(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same in float64."""
    x = x.double()
    distribution = torch.special.erfc(-x / math.sqrt(2)) / 2
    return x * distribution, distribution + x * density(x), density(x) * (2 - x * x)


def density(x: Tensor) -> Tensor:
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def units(values: Tensor, dtype: torch.dtype) -> Tensor:
    """What the last place of each is worth."""
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    return torch.exp2(values.abs().log2().floor()).mul(info.eps).clamp(min=least)


def floats() -> Tensor:
    """float32 of either sign from the smallest to 20, dense where the function is not linear."""
    bits = torch.cat(
        [torch.arange(0, 0x3D000000, 50021), torch.arange(0x3D000000, 0x41A00000, 499)]
    )
    positive = bits.to(torch.int32).view(torch.float32)
    return torch.cat([positive, -positive])


def errors(x: Tensor) -> list[Tensor]:
    """Of y, y′ and y″, in units of the last place. Near −0.75 y′ vanishes as a difference, and is
    no better than its terms."""
    found: list[Tensor] = []
    for got, true in zip(derivatives(x), exact(x), strict=True):
        scale = true.abs()
        if len(found) == 1:
            scale = torch.maximum(scale, (density(x.double()) * x.double().abs()).where(x < 0, 0))
        found.append((got.double() - true).abs() / units(scale, x.dtype))
    return found


def test_float32_to_a_few_units() -> None:
    x = floats()
    values, *rest = errors(x)
    assert values.max() < 6
    for error in rest:
        assert error[x.abs() < NORMAL].max() < 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits_are_rounded_nearly_once(dtype: torch.dtype) -> None:
    """All numbers of the type up to 20."""
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(dtype)
    x = x[x.abs() <= 20]
    for error in errors(x):
        assert error[x.abs() < NORMAL].max() < 0.6


#: The errors that ``kernels/common/normal.h`` states of its two polynomials.
STATED = (4.3e-8, 1.6e-5)


@pytest.mark.parametrize("number", [0, 1])
def test_the_polynomials_are_as_good_as_is_said(number: int) -> None:
    text = (kernels_root() / "common" / "normal.h").read_text(encoding="utf-8")
    horner = re.findall(r"float mills = (\S+)f;((?:\s*mills = mills \* t [+-] \S+f;)+)", text)
    first, rest = horner[number]
    powers = [first, *(sign + digits for sign, digits in re.findall(r"([+-]) (\S+)f;", rest))]
    coefficients = np.array(powers[::-1], dtype=np.float32).astype(np.float64)
    scale, degree = KINDS[number]
    assert len(coefficients) == degree + 1
    assert relative_error(scale, coefficients) < STATED[number]


@pytest.mark.parametrize("number", [0, 1])
def test_a_fit_comes_as_near_but_for_the_rounding_of_its_coefficients(number: int) -> None:
    coefficients, error = fit(*KINDS[number])
    assert len(coefficients) == KINDS[number][1] + 1
    # Which way a coefficient is rounded to float32 depends on how the processor solves the fit.
    assert error < 3 * STATED[number]
