"""Single elements of a gradient, measured and located."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.elements import Residuals, measure_elements


def measured(function_map, cotangents=None):
    x = function_map.values[0]
    vs = cotangents or [torch.ones_like(y) for y in function_map.outputs]
    residuals = Residuals(function_map, 0, [vs], [torch.zeros_like(x)])
    (found,) = measure_elements(residuals, range(x.numel()))
    return found


@pytest.mark.parametrize(
    ("function", "derivative", "power"),
    [
        (torch.exp, torch.exp, 1e-6),
        (torch.sin, torch.cos, 1e-6),
        (lambda x: x**3, lambda x: 3 * x**2, 1e-6),
        (lambda x: 1 / (2 + x**2), lambda x: -2 * x / (2 + x**2) ** 2, 1e-6),
        (lambda x: 5 * x + 1e6, lambda x: torch.full_like(x, 5.0), 1e-3),
        (lambda x: 0 * x, torch.zeros_like, 1e-15),
    ],
)
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (2, 3, 2)])
def test_elements_meet_closed_forms_within_their_bars(
    function, derivative, power, shape, as_map, randn
):
    x = randn(*shape)
    found = measured(as_map(function, [x]))
    assert found.indices.tolist() == list(range(x.numel()))
    error = (found.measured - derivative(x).reshape(-1)).abs()
    assert bool((error <= found.bars + 1e-15).all())
    assert float(found.bars.max()) < power


def test_complex_elements_follow_the_conjugate_convention(as_map, randn):
    z = randn(5, dtype=torch.complex128)
    found = measured(as_map(lambda t: t**2, [z]))
    assert torch.allclose(found.measured, (2 * z).conj(), atol=1e-8)
    modulus = measured(as_map(torch.abs, [z]))
    assert torch.allclose(modulus.measured, z / z.abs(), atol=1e-8)


def test_the_cotangent_weighs_the_outputs(as_map, randn):
    x, v = randn(6), randn(6, seed=1)
    found = measured(as_map(torch.exp, [x]), [v])
    assert torch.allclose(found.measured, v * x.exp(), atol=1e-8)


def test_elements_that_can_not_be_measured_are_nan_with_an_infinite_bar(as_map):
    x = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)
    found = measured(as_map(torch.sqrt, [x]))
    assert found.measured[:2].tolist() == pytest.approx([0.5, 8**-0.5])
    assert bool(torch.isnan(found.measured[2]))
    assert float(found.bars[2]) == float("inf")


def test_float32_elements_carry_wider_bars(as_map, randn):
    x = randn(10, dtype=torch.float32)
    found = measured(as_map(torch.exp, [x]))
    error = (found.measured - x.double().exp()).abs()
    assert bool((error <= found.bars).all())
    assert 1e-7 < float(found.bars.max()) < 0.1


def test_empty_inputs(as_map):
    x = torch.zeros(0, 3, dtype=torch.float64)
    assert measured(as_map(torch.exp, [x])).indices.tolist() == []
