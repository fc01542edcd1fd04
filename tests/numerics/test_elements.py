"""Single elements of a gradient, measured and located."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics._elements import LOCATED, MEASURE_ALL, locate, measure_elements


def measured(function_map, claimed, **options):
    vs = [torch.ones_like(y) for y in function_map.outputs]
    return measure_elements(function_map, 0, vs, claimed, **options)


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
    found = measured(as_map(function, [x]), torch.zeros_like(x))
    assert found.complete
    assert found.indices.tolist() == list(range(x.numel()))
    error = (found.measured - derivative(x).reshape(-1)).abs()
    assert bool((error <= found.bars + 1e-15).all())
    assert float(found.bars.max()) < power


def test_complex_elements_follow_the_conjugate_convention(as_map, randn):
    z = randn(5, dtype=torch.complex128)
    found = measured(as_map(lambda t: t**2, [z]), torch.zeros_like(z))
    assert torch.allclose(found.measured, (2 * z).conj(), atol=1e-8)
    modulus = measured(as_map(torch.abs, [z]), torch.zeros_like(z))
    assert torch.allclose(modulus.measured, z / z.abs(), atol=1e-8)


def test_the_cotangent_weighs_the_outputs(as_map, randn):
    x, v = randn(6), randn(6, seed=1)
    found = measure_elements(as_map(torch.exp, [x]), 0, [v], torch.zeros_like(x))
    assert torch.allclose(found.measured, v * x.exp(), atol=1e-8)


def test_elements_that_can_not_be_measured_are_nan_with_an_infinite_bar(as_map):
    x = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)
    found = measured(as_map(torch.sqrt, [x]), torch.zeros_like(x))
    assert found.measured[:2].tolist() == pytest.approx([0.5, 8**-0.5])
    assert bool(torch.isnan(found.measured[2]))
    assert float(found.bars[2]) == float("inf")


def test_float32_elements_carry_wider_bars(as_map, randn):
    x = randn(10, dtype=torch.float32)
    found = measured(as_map(torch.exp, [x]), torch.zeros_like(x))
    error = (found.measured - x.double().exp()).abs()
    assert bool((error <= found.bars).all())
    assert 1e-7 < float(found.bars.max()) < 0.1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_wrong_elements_of_a_large_tensor_are_located(count, as_map, randn):
    x = randn(40, 50)
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        wrong = torch.randperm(x.numel(), generator=generator)[:count]

        def fault(g, wrong=wrong):
            g.view(-1)[wrong] += 1.0
            return g

        planted = as_map(torch.sin, [x], faults={0: fault})
        vs = [torch.ones_like(x)]
        claimed = planted.pull(vs)[0]
        assert sorted(locate(planted, 0, vs, claimed, seed=seed)) == sorted(wrong.tolist())
        found = measure_elements(planted, 0, vs, claimed, seed=seed)
        assert not found.complete
        assert set(wrong.tolist()) <= set(found.indices.tolist())
        assert x.numel() > MEASURE_ALL
        true = x.cos().reshape(-1)[found.indices]
        assert torch.allclose(found.measured, true, atol=1e-7)


def test_nothing_is_located_in_a_right_gradient(as_map, randn):
    x = randn(40, 50)
    right = as_map(torch.sin, [x])
    vs = [torch.ones_like(x)]
    for seed in range(10):
        assert locate(right, 0, vs, right.pull(vs)[0], seed=seed) == []


def test_location_stops_after_some(as_map, randn):
    x = randn(40, 50)
    planted = as_map(torch.sin, [x], faults={0: torch.neg})
    vs = [torch.ones_like(x)]
    assert len(locate(planted, 0, vs, planted.pull(vs)[0], seed=0)) == LOCATED


def test_empty_inputs(as_map):
    x = torch.zeros(0, 3, dtype=torch.float64)
    found = measured(as_map(torch.exp, [x]), x)
    assert (found.indices.tolist(), found.complete) == ([], True)
