"""Inner products and norms: in float64, without overflow."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.numerics.products import norm, real_dot, rms, unit_roundoff, widened


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float64),
        (torch.bfloat16, torch.float64),
        (torch.int64, torch.float64),
        (torch.bool, torch.float64),
        (torch.complex64, torch.complex128),
    ],
)
def test_widened_dtype(dtype, wide):
    assert widened(torch.ones(3, dtype=dtype)).dtype == wide


def test_widened_is_dense_and_detached():
    sparse = torch.eye(3, dtype=torch.float32).to_sparse()
    assert torch.equal(widened(sparse), torch.eye(3, dtype=torch.float64))
    assert not widened(torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0], [3.0, 4.0], 11.0),
        ([1 + 2j], [3 - 1j], 1.0),  # conj(1 + 2i)·(3 − i) = 1 − 7i
        ([1j], [1j], 1.0),
        ([1j], [1.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_real_dot(a, b, expected):
    assert real_dot(torch.tensor(a), torch.tensor(b)) == pytest.approx(expected, abs=1e-15)


def test_real_dot_sums_in_float64():
    a = torch.full((2**12,), 1e-4, dtype=torch.bfloat16)
    each = float(a[0])
    assert real_dot(a, torch.ones_like(a)) == pytest.approx(4096 * each, rel=1e-12)


def test_real_dot_of_half_precision_does_not_overflow():
    a = torch.full((4,), 6e4, dtype=torch.float16)
    assert real_dot(a, a) == pytest.approx(4 * float(a[0]) ** 2)


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e-200, 1e200, 1e300])
def test_norm_and_rms_at_every_scale(scale):
    x = torch.tensor([3.0, 4.0], dtype=torch.float64) * scale
    assert norm(x) == pytest.approx(5.0 * scale)
    assert rms(x) == pytest.approx(5.0 * scale / math.sqrt(2.0))


def test_norm_of_special_values():
    assert norm(torch.zeros(0)) == 0.0
    assert norm(torch.zeros(3)) == 0.0
    assert rms(torch.zeros(0)) == 0.0
    assert norm(torch.tensor([1.0, math.inf])) == math.inf
    assert math.isnan(norm(torch.tensor([1.0, math.nan])))
    assert norm(torch.tensor([3 + 4j])) == pytest.approx(5.0)
    assert norm(torch.tensor(-2.0)) == 2.0


def test_unit_roundoff():
    assert unit_roundoff(torch.float64) == 2.0**-52
    assert unit_roundoff(torch.complex64) == 2.0**-23
    assert unit_roundoff(torch.bfloat16) == 2.0**-7
