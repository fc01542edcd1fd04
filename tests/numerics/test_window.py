"""Window fits: polynomials exactly, error bars that cover, windows as coarse as is borne out."""

from __future__ import annotations

import math
import random

import pytest
import torch

from gradlint.numerics._window import RATIO, WINDOW, choose_window, fit
from gradlint.numerics.differences import CRITICAL, Step, difference

NOISE = 1e-16  # of half a difference, that is of residual·h


def steps(residual, largest=1e-2, noise=NOISE, count=WINDOW, seed=None) -> list[Step]:
    draw = random.Random(seed)
    found = []
    for k in range(count):
        h = largest / RATIO**k
        error = 0.0 if seed is None else noise / h * draw.gauss(0.0, 1.0)
        found.append(Step(h, 5.0, residual(h) + error, noise / h))
    return found


@pytest.mark.parametrize("slope", [0.0, 1e-9, -3.0])
def test_odd_polynomials_are_fitted_exactly(slope):
    found = fit(steps(lambda h: slope + 2.0 * h**2 - 7.0 * h**4), 1.0)
    assert found.residual == pytest.approx(slope, abs=1e-13)
    assert (found.steps, found.freedom) == (WINDOW, WINDOW - 3)
    assert (found.largest, found.smallest) == (1e-2, pytest.approx(1e-2 / RATIO**7))


def test_the_standard_error_is_that_of_the_noise():
    scores = []
    for seed in range(400):
        found = fit(steps(lambda h: 2.0 * h**2, seed=seed), 1.0)
        scores.append(found.residual / found.error)
    assert sum(abs(score) < 1.0 for score in scores) == pytest.approx(0.7 * 400, abs=50)
    assert max(map(abs, scores)) < CRITICAL


def test_noise_beyond_the_model_inflates_the_error_and_lowers_the_probability():
    calm, wild = (
        fit(steps(lambda h: 0.0, noise=noise, seed=1), kappa)
        for noise, kappa in ((NOISE, 1.0), (NOISE, 0.01))
    )
    assert wild.error == pytest.approx(0.01 * calm.error * math.sqrt(wild.chi_square / 5), rel=0.7)
    assert wild.probability < 1e-4 < calm.probability


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_steps_give_nothing(count):
    assert fit(steps(lambda h: 0.0, count=count), 1.0) is None
    assert fit(steps(lambda h: 0.0, noise=0.0), 1.0) is None


@pytest.mark.parametrize(
    ("function", "wrong", "coarse"),
    [
        (torch.exp, 0.0, 1e-2),
        (lambda x: x * x, 0.0, 0.1),
        (lambda x: 3 * x, 0.0, 0.1),
        (torch.exp, 1e-6, 1e-2),
        (lambda x: (3 * x).sin(), 0.0, 1e-3),
    ],
    ids=["exp", "square", "linear", "exp, wrong", "sin 3x"],
)
def test_the_window_is_coarse_and_its_bar_covers(function, wrong, coarse, as_map, randn):
    for seed in range(10):
        x = randn(6, 5, seed=seed)
        claimed = as_map(function, [x], faults={0: lambda g: g * (1.0 + wrong)})
        found, product = _chosen(claimed, seed)
        assert found is not None
        bar = found.bar(53, product)
        assert bar < 1e-9 * product
        missed = abs(found.residual) - wrong * product * 6.0
        assert missed < bar
        assert found.largest > coarse
        if wrong:
            assert abs(found.residual) > bar


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_is_covered_too(dtype, as_map, randn):
    for seed in range(10):
        claimed = as_map(torch.exp, [randn(40, 5, seed=seed, dtype=dtype)])
        found, product = _chosen(claimed, seed, 2.0**-8 if dtype == torch.float32 else 0.5)
        if found is None:
            continue
        bits = 24 if dtype == torch.float32 else 8
        assert abs(found.residual) < found.bar(bits, product)
        assert found.largest >= 32 * 2.0**-bits


def test_functions_that_can_not_be_measured_have_no_window():
    assert choose_window(lambda h: None, 1e-4, 0.5, 1.0, 53) is None
    jump = choose_window(lambda h: Step(h, 1 / h, 1 / h, NOISE / h), 1e-4, 0.5, 1.0, 53)
    assert jump is None or abs(jump.residual) < jump.bar(53, 1.0)
    within = choose_window(lambda h: Step(h, 1.0, 0.0, NOISE / h), 1e-15, 1e-15, 1.0, 53)
    assert within is None


def _chosen(function, seed: int, start: float = 2.0**-12, kappa: float = 3.0):
    (x,) = function.values
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randn(x.shape, generator=generator, dtype=torch.float64).sign()
    u = x.double().abs() * signs
    v = [torch.randn(y.shape, generator=generator).to(y.dtype) for y in function.outputs]
    g = function.pull(v)[0]

    def take(h: float) -> Step | None:
        return difference(lambda value: function.evaluate([value]), x, u, v, g, h)

    bits = {torch.float64: 53, torch.float32: 24, torch.bfloat16: 8}[x.dtype]
    found = choose_window(take, start, 0.5, kappa, bits)
    return found, float((g.double() * u).norm())
