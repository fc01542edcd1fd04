"""Central differences: realised displacement, error model, estimates with error bars."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.numerics.differences import (
    CRITICAL,
    LADDER,
    LADDER_COARSER,
    LADDER_FINER,
    Step,
    difference,
    estimate,
    noise_factor,
    noise_of,
    significand_bits,
)

ONE = torch.ones(1, dtype=torch.float64)


def ladder(function, x, u, claimed, exponents, v=None):
    x, u = torch.as_tensor(x), torch.as_tensor(u)
    y = function(x)
    v = torch.ones_like(y) if v is None else v
    claimed = torch.as_tensor(claimed, dtype=torch.float64).to(x.dtype).expand_as(x)
    steps = [difference(lambda t: [function(t)], x, u, [v], claimed, 2.0**-e) for e in exponents]
    return [step for step in steps if step is not None]


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        (torch.float64, 53),
        (torch.complex128, 53),
        (torch.float32, 24),
        (torch.complex64, 24),
        (torch.float16, 11),
        (torch.bfloat16, 8),
    ],
)
def test_significand_bits(dtype, bits):
    assert significand_bits(dtype) == bits
    assert bits in LADDER
    assert not set(LADDER[bits]) & set(LADDER_FINER[bits] + LADDER_COARSER[bits])
    assert max(LADDER_COARSER[bits], default=0) < min(LADDER[bits])
    assert max(LADDER[bits]) < min(LADDER_FINER[bits])


# f, x, f'(x), f'''(x): a central difference is f' + h²·f'''/6.
CLOSED = [
    (torch.exp, 0.7, math.exp(0.7), math.exp(0.7)),
    (torch.sin, 1.1, math.cos(1.1), -math.cos(1.1)),
    (torch.log, 2.5, 1 / 2.5, 2 / 2.5**3),
    (torch.reciprocal, 1.5, -1 / 1.5**2, -6 / 1.5**4),
    (lambda x: x**3, 0.9, 3 * 0.9**2, 6.0),
    (lambda x: x**2, 0.9, 1.8, 0.0),
    (torch.sqrt, 4.0, 0.25, 3 / 8 * 4.0**-2.5),
]


@pytest.mark.parametrize(("function", "x", "first", "third"), CLOSED)
@pytest.mark.parametrize("e", [5, 8])
def test_truncation_of_one_difference_is_that_of_the_formula(function, x, first, third, e):
    (step,) = ladder(function, torch.tensor([x], dtype=torch.float64), ONE, first, [e])
    predicted = step.h**2 * third / 6
    assert step.slope == pytest.approx(first + predicted, rel=1e-4)
    assert step.residual == pytest.approx(predicted, rel=0.02, abs=1e-11)


@pytest.mark.parametrize(("function", "x", "first", "third"), CLOSED)
def test_estimate_meets_closed_form_within_its_bar(function, x, first, third):
    steps = ladder(function, torch.tensor([x], dtype=torch.float64), ONE, first, LADDER[53])
    found = estimate(steps, 1.0)
    assert abs(found.residual) <= found.bar
    assert found.bar < 1e-7 * abs(first)
    assert found.slope == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize("error", [1e-2, -3e-4, 1e-6])
@pytest.mark.parametrize(("function", "x", "first", "third"), CLOSED)
def test_estimate_finds_the_error_of_a_wrong_claim(function, x, first, third, error):
    wrong = first * (1 + error)
    steps = ladder(function, torch.tensor([x], dtype=torch.float64), ONE, wrong, LADDER[53])
    found = estimate(steps, 1.0)
    assert found.residual == pytest.approx(-first * error, rel=2e-2)
    assert abs(found.residual) > 3 * found.bar


def test_displacement_is_the_one_that_rounding_left():
    # In bfloat16 1 + 2⁻⁸ rounds to 1, and 1 − 2⁻⁸ is itself: half of the nominal 2·2⁻⁸.
    x = torch.tensor([1.0], dtype=torch.bfloat16)
    (step,) = ladder(lambda t: 2.0 * t, x, ONE, 2.0, [8])
    assert step.slope == 1.0
    assert step.residual == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_linear_functions_of_exact_numbers_leave_no_residual(dtype, randn):
    x = randn(40, dtype=dtype)
    u = randn(40, seed=1).abs() * x.double().abs()
    for step in ladder(lambda t: 2.0 * t, x, u, 2.0, LADDER[significand_bits(dtype)]):
        assert step.residual == pytest.approx(0.0, abs=1e-12)


def test_complex_gradients_predict_the_real_part_of_conj_g_dx(randn):
    z, u = randn(5, dtype=torch.complex128), randn(5, seed=1, dtype=torch.complex128)
    v = randn(5, seed=2, dtype=torch.complex128)
    gradient = v * (2 * z).conj()
    y = z**2
    step = difference(lambda t: [t**2], z, u, [v], gradient, 2.0**-10)
    assert step.residual == pytest.approx(0.0, abs=1e-9)
    wrong = difference(lambda t: [t**2], z, u, [v], v * 2 * z, 2.0**-10)
    assert abs(wrong.residual) > 0.1
    assert y.shape == (5,)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: [torch.log(t - 0.4)],  # NaN at x − h
        lambda t: [1 / (t - 0.75)],  # Inf at x + h
        lambda t: None,  # can't be evaluated
        lambda t: [torch.ones(2, dtype=torch.float64) if float(t) > 0.5 else t],  # another shape
    ],
)
def test_no_step_where_the_function_has_no_value(function):
    x = torch.tensor([0.5], dtype=torch.float64)
    assert difference(function, x, ONE, [ONE], ONE, 0.25) is None


def test_empty_tensors_have_slope_zero():
    empty = torch.zeros(0, dtype=torch.float64)
    step = difference(lambda t: [t], empty, empty, [empty], empty, 0.5)
    assert (step.slope, step.residual, step.noise) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("kappa", [1.0, 30.0, 1e6])
def test_noise_factor_measures_noise_beyond_one_rounding(kappa):
    generator = torch.Generator().manual_seed(3)
    ladders = []
    for _ in range(40):
        draws = torch.randn(4, generator=generator, dtype=torch.float64).tolist()
        noises = [1e-12 * 8.0**k for k in range(4)]
        ladders.append(
            [
                Step(8.0**-k, 1.0 + kappa * d * s, kappa * d * s, s)
                for k, (d, s) in enumerate(zip(draws, noises, strict=True))
            ]
        )
    assert kappa / 1.6 < noise_factor(ladders) < 1.6 * kappa + 1.0


def test_noise_factor_where_the_finest_steps_scatter_less() -> None:
    """An op that rounds its input: the finest steps leave most elements where they are."""
    ladders = [
        [
            Step(8.0**-k, sign * size * 8.0**k, sign * size * 8.0**k, 8.0**k)
            for k, (sign, size) in enumerate(zip((1, -1, 1, -1, 1, -1), sizes, strict=True))
        ]
        for sizes in ((60.0, 70.0, 50.0, 60.0, 12.0, 5.0), (50.0, 60.0, 70.0, 50.0, 9.0, 4.0))
    ]
    assert 50.0 < noise_factor(ladders) < 110.0


def test_noise_factor_is_no_truncation() -> None:
    """Of a smooth function, the coarse steps differ by more than noise."""
    ladder = [
        Step(h, (error := h**4 + 1e-12 * sign / h), error, 1e-12 / h)
        for h, sign in zip((2.0**-e for e in (3, 5, 7, 10, 13, 16)), (1, -1) * 3, strict=True)
    ]
    assert 1.0 < noise_factor([ladder]) < 5.0


def test_noise_factor_without_steps_or_noise_is_one():
    assert noise_factor([]) == 1.0
    assert noise_factor([[Step(1.0, 2.0, 0.0, 0.0), Step(0.5, 3.0, 0.0, 0.0)]]) == 1.0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_estimate_from_fewer_than_three_steps(count):
    assert estimate([Step(2.0**-k, 1.0, 0.0, 1e-15) for k in range(count)], 1.0) is None


def test_error_bar_covers_the_noise():
    misses, generator = 0, torch.Generator().manual_seed(5)
    for _ in range(300):
        draws = torch.randn(4, generator=generator, dtype=torch.float64).tolist()
        noises = [1e-10 * 8.0**k for k in range(4)]
        steps = [
            Step(8.0**-k, d * s, d * s, s)
            for k, (d, s) in enumerate(zip(draws, noises, strict=True))
        ]
        found = estimate(steps, 1.0)
        misses += abs(found.residual) > found.bar
        assert found.bar >= CRITICAL * found.sigma
    assert misses == 0


@pytest.mark.parametrize("power", [-1, -2 / 3])
def test_jumps_and_vertical_tangents_never_look_converged(power):
    # Slopes of a jump grow like 1/h, those of ∛x like h^(−2/3): there is no derivative.
    for ratio in (2.0, 4.0, 8.0):
        steps = [
            Step(ratio**-k, ratio ** (-k * power), ratio ** (-k * power), 1e-16)
            for k in range(1, 6)
        ]
        found = estimate(steps, 1.0)
        assert abs(found.residual) <= found.bar


@pytest.mark.parametrize("frequency", [1e4, 1e5, 1e6, 1e7])
def test_coarse_steps_that_alias_are_not_believed(frequency):
    # Far beyond the period the slopes of sin(ωx) converge, to zero.
    x = torch.tensor([0.3, -0.7, 1.9], dtype=torch.float64)
    claimed = frequency * torch.cos(frequency * x)
    exponents = sorted(LADDER[53] + LADDER_FINER[53] + LADDER_COARSER[53])
    steps = ladder(lambda t: torch.sin(frequency * t), x, x.abs(), claimed, exponents)
    found = estimate(steps, 1.0)
    assert abs(found.residual) <= found.bar


def test_noise_factor_is_blind_to_rounded_displacements():
    """Slopes that divide by a nominal step scatter where the input has few digits; residuals use
    the realised displacement and do not."""
    ladder = [
        Step(8.0**-k, 1.0 + scatter, 0.0, 1e-12) for k, scatter in enumerate((0, 3e-3, -2e-3, 4e-3))
    ]
    assert noise_factor([ladder]) == 1.0
    assert noise_factor([[Step(s.h, s.slope, 5.0 * s.slope, s.noise) for s in ladder]]) > 1e8


def test_noise_of_values_whose_squares_overflow() -> None:
    y = torch.tensor([1e300], dtype=torch.float64)
    noise = noise_of([ONE], [y], [y], [1e290])
    assert 1e290 < noise < 1e291
