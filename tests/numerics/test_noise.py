"""The difference table: white noise is measured, smooth functions and staircases are told."""

from __future__ import annotations

import math
import random
import statistics

import pytest
import torch

from gradlint.numerics._noise import Noise, ecnoise, measure_noise, too_fine
from gradlint.numerics.products import unit_roundoff


def noisy(level: float, seed: int, smooth=lambda t: 0.0, count: int = 9) -> list[float]:
    draw = random.Random(seed)
    return [smooth(k / count) + level * draw.gauss(0.0, 1.0) for k in range(count)]


@pytest.mark.parametrize("level", [1e-15, 1e-6, 1.0, 1e20])
@pytest.mark.parametrize(
    "smooth",
    [lambda t: 0.0, lambda t: 5.0, lambda t: -3.0 * t, lambda t: 2.0 * t - t * t],
    ids=["zero", "constant", "linear", "quadratic"],
)
def test_white_noise_is_measured(level, smooth):
    found = [ecnoise(noisy(level, seed, lambda t: 10 * level * smooth(t))) for seed in range(100)]
    known = [value for value in found if value is not None]
    assert len(known) >= 90
    assert statistics.median(known) == pytest.approx(level, rel=0.5)
    assert max(known) < 3.0 * level
    assert min(known) > level / 8.0


@pytest.mark.parametrize(
    "values",
    [
        [0.0] * 9,
        [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 2.0, 3.0],
        [float(k) for k in range(9)],
        [float(2**k) for k in range(9)],
        [math.exp(0.5 * k) for k in range(9)],
        [0.0, 1.0, math.nan, 1.0, 0.0, 1.0, 2.0],
        [0.0, 1.0, math.inf, 1.0, 0.0, 1.0, 2.0],
        [1.0, 2.0],
        [],
    ],
    ids=["zeros", "half alike", "line", "powers", "exp", "NaN", "Inf", "two", "none"],
)
def test_what_is_no_noise_is_declined(values):
    assert ecnoise(values) is None


def test_half_of_the_differences_zero_is_too_fine():
    assert too_fine([1.0, 1.0, 1.0, 2.0, 3.0])
    assert not too_fine([1.0, 1.0, 2.0, 3.0, 4.0])


# Function, noise of one value in units of one rounding of its outputs: at least, at most.
OPS = {
    "exp": (torch.exp, torch.float64, 0.2, 2.0),
    "square": (lambda x: x * x, torch.float64, 0.2, 2.0),
    "exp in float32": (torch.exp, torch.float32, 0.2, 2.0),
    "exp in bfloat16": (torch.exp, torch.bfloat16, 0.2, 3.0),
    "cancelling": (lambda x: (x + 1e6) - 1e6 + 1.0, torch.float64, 1e4, 1e8),
    "float32 inside": (lambda x: x.float().exp().double(), torch.float64, 2.0**27, 2.0**31),
    "bfloat16 inside": (lambda x: x.bfloat16().exp().float(), torch.float32, 2.0**13, 2.0**19),
}


@pytest.mark.parametrize("name", OPS)
def test_noise_of_operators_in_units_of_a_rounding(name, as_map, randn):
    function, dtype, least, most = OPS[name]
    ratios: list[float | None] = []
    for seed in range(10):
        x = randn(6, 5, seed=seed, dtype=dtype)
        ratios.append(_noise(as_map(function, [x]), seed))
    ratios = [ratio for ratio in ratios if ratio is not None]
    assert len(ratios) >= 8
    assert least < statistics.median(ratios) < most
    assert max(ratios) < 10.0 * most


@pytest.mark.parametrize("factor", [0.0, 3.0, -1.0])
def test_a_wrong_linear_part_is_no_noise(factor, as_map, randn):
    x = randn(6, 5)
    right = _noise(as_map(torch.exp, [x]), 0)
    wrong = _noise(as_map(torch.exp, [x], faults={0: lambda g: factor * g}), 0)
    assert right / 8.0 < wrong < 8.0 * right


@pytest.mark.parametrize("function", [torch.abs, torch.relu, lambda x: x.amax(-1)])
def test_a_kink_at_the_sample_is_no_noise(function, as_map, randn):
    for seed in range(10):
        x = randn(5, 4, seed=seed) * 0.0
        x[0] = randn(4, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        u = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        claimed = as_map(function, [x])
        v = [torch.ones_like(y) for y in claimed.outputs]
        found = measure_noise(
            lambda value, claimed=claimed: claimed.evaluate([value]),
            x,
            u,
            claimed.outputs,
            v,
            claimed.pull(v)[0],
            2.0**-45,
        )
        assert found is None or not found.plateau


def test_functions_that_are_constant_or_raise_have_no_noise_to_measure(as_map, randn):
    assert _noise(as_map(torch.sign, [randn(5)]), 0) is None

    def brittle(x):
        raise_at = not torch.equal(x, first)
        if raise_at:
            raise ValueError("elsewhere")
        return x

    first = randn(3)
    assert _noise(as_map(brittle, [first], vjp=lambda v, x: [v]), 0) is None


def _noise(function, seed: int) -> float | None:
    """Noise over one rounding of the outputs."""
    x = function.values[0]
    generator = torch.Generator().manual_seed(seed)
    u = x.double().abs() * torch.randn(x.shape, generator=generator, dtype=torch.float64).sign()
    v = [torch.randn(y.shape, generator=generator).to(y.dtype) for y in function.outputs]
    spacing = 2.0**4 * unit_roundoff(function.outputs[0].dtype)
    g = function.pull(v)[0]
    found = measure_noise(
        lambda value: function.evaluate([value]), x, u, function.outputs, v, g, spacing
    )
    if found is None:
        return None
    assert isinstance(found, Noise)
    (y,) = function.outputs
    one = unit_roundoff(y.dtype) * float((v[0].double() * y.double()).norm()) / math.sqrt(12.0)
    return found.level / one
