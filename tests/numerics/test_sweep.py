"""Sweeps: branches, chosen step, plateau of a wrong gradient, states of the steps."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from gradlint.numerics.step_ladder import NOT_FINITE, OK, RAISED, RANGES, UNCHANGED, step_sizes
from gradlint.numerics.sweep import CLAIM_NOT_FINITE, KINKS, sweep_input
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED, UNSURE

F = torch.nn.functional
SEEDS = range(20)


@pytest.mark.parametrize("bits", RANGES)
def test_steps_fall_over_the_range_of_the_dtype(bits):
    coarsest, finest, usual = RANGES[bits]
    sizes = step_sizes(bits, None)
    assert (sizes[0], sizes[-1], len(sizes)) == (2.0**-coarsest, 2.0**-finest, usual)
    ratios = {round(a / b, 9) for a, b in itertools.pairwise(sizes)}
    assert ratios in ({4.0}, {2.0})


@pytest.mark.parametrize(("count", "expected"), [(1, 3), (3, 3), (12, 12), (100, 100)])
def test_the_number_of_steps_can_be_chosen(count, expected, as_map, randn):
    assert len(step_sizes(53, count)) == expected
    found = sweep_input(as_map(torch.exp, [randn(4)]), 0, seed=0, steps=count)
    assert len(found.points) == expected
    assert found.verdict in (AGREES, UNSURE)


@pytest.mark.parametrize("seed", SEEDS)
def test_truncation_and_roundoff_are_predicted(seed, as_map, randn):
    # exp: the error of a central difference is h²·Σ v·u³·exp(x)/6, then κ·σ/h.
    found = sweep_input(as_map(torch.exp, [randn(6, 5, seed=seed)]), 0, seed=seed)
    assert found.verdict == AGREES
    assert found.pair.resolution < 1e-10
    assert found.pair.error < found.pair.bar
    assert found.kappa < 5.0
    for point in found.points[1:5]:  # 2⁻³ … 2⁻⁹
        assert abs(point.residual) == pytest.approx(point.truncation, rel=0.05)
    fine = [abs(point.residual) / point.roundoff for point in found.points[12:]]
    assert 0.1 < sorted(fine)[len(fine) // 2] < 3.0
    assert max(fine) < 6.5
    chosen = [point for point in found.points if point.h == found.pair.h]
    assert len(chosen) == 1
    assert 1e-6 < chosen[0].h < 1e-2


def test_quadratic_functions_have_no_truncation(as_map, randn):
    found = sweep_input(as_map(lambda x: x * x, [randn(6)]), 0, seed=0)
    assert found.verdict == AGREES
    assert found.curvature == 0.0
    assert found.pair.resolution < 1e-12


@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-4, -2.0])
def test_a_wrong_gradient_is_a_plateau_of_its_size(error, as_map, randn):
    for seed in SEEDS:
        x = randn(6, 5, seed=seed)
        found = sweep_input(
            as_map(torch.exp, [x], faults={0: lambda g: g * (1 + error)}), 0, seed=seed
        )
        assert found.verdict == DIFFERS
        slope = abs(found.pair.measured)
        assert found.pair.error == pytest.approx(abs(error) * slope, rel=1e-6)
        for point in found.points[8:14]:
            assert abs(point.residual) == pytest.approx(abs(error) * slope, rel=1e-3)


@pytest.mark.parametrize(("error", "verdict"), [(1e-5, DIFFERS), (1e-8, ROUNDED), (0.0, AGREES)])
def test_errors_near_the_tolerance(error, verdict, as_map, randn):
    for seed in SEEDS:
        planted = as_map(torch.exp, [randn(5, seed=seed)], faults={0: lambda g: g * (1 + error)})
        assert sweep_input(planted, 0, seed=seed).verdict == verdict


@pytest.mark.parametrize(
    "vjp",
    [
        lambda v, x: [v],
        lambda v, x: [-v * x.exp()],
        lambda v, x: [x.exp()],
        lambda v, x: [None],
        lambda v, x: [torch.zeros_like(x)],
        lambda v, x: [(v * x.exp()).mT.reshape(x.shape)],
        lambda v, x: [torch.cat([(v * x.exp())[:-1], 0 * x[-1:]])],
    ],
    ids=["passed on", "sign", "ignores", "none", "zero", "transposed", "last row zero"],
)
def test_planted_faults_differ(vjp, as_map, randn):
    for seed in SEEDS:
        found = sweep_input(as_map(torch.exp, [randn(5, 4, seed=seed)], vjp=vjp), 0, seed=seed)
        assert found.verdict == DIFFERS, seed


def test_one_wrong_element_of_many_is_seen(as_map, randn):
    def fault(g):
        g.view(-1)[77_777] *= 1.1
        return g

    planted = as_map(torch.exp, [randn(300, 400)], faults={0: fault})
    assert sweep_input(planted, 0, seed=0).verdict == DIFFERS


def test_the_inputs_are_swept_one_by_one(as_map, randn):
    planted = as_map(torch.mul, [randn(3), randn(3, seed=1)], faults={1: lambda g: 2 * g})
    assert sweep_input(planted, 0, seed=0).verdict == AGREES
    assert sweep_input(planted, 1, seed=0).verdict == DIFFERS
    assert sweep_input(planted, 1, seed=0).index == 1


# Right gradients: name → (value by seed, function).
RIGHT = {
    "float32 inside": (lambda r, s: r(5, 4, seed=s), lambda x: x.float().exp().double()),
    "x + 1e8": (lambda r, s: r(5, 4, seed=s), lambda x: x + 1e8),
    "sin(x + 1e8)": (lambda r, s: r(5, 4, seed=s), lambda x: (x + 1e8).sin()),
    "sin(1e6·x)": (lambda r, s: r(5, 4, seed=s), lambda x: (1e6 * x).sin()),
    "log near 0": (lambda r, s: 1e-9 * r(5, seed=s).abs(), torch.log),
    "arcsine near 1": (lambda r, s: torch.tensor([0.3, 0.99, -0.999999]).double(), torch.asin),
    "reciprocal": (lambda r, s: r(50, seed=s), torch.reciprocal),
    "constant": (lambda r, s: r(5, seed=s), lambda x: 0 * x + 3),
    "sign": (lambda r, s: r(5, 4, seed=s), torch.sign),
    "relu": (lambda r, s: r(5, 4, seed=s), torch.relu),
    "zero dimensional": (lambda r, s: r(seed=s), torch.tanh),
    "complex": (lambda r, s: r(6, seed=s, dtype=torch.complex128), lambda z: (z * z).exp()),
    "not holomorphic": (
        lambda r, s: r(6, seed=s, dtype=torch.complex128),
        lambda z: z * z.conj() + z.abs(),
    ),
    "1e150": (lambda r, s: 1e150 * r(8, seed=s), lambda x: x * x),
    "several outputs": (lambda r, s: r(8, seed=s), lambda x: (1e-9 * x, 1e9 * x.exp(), x.sin())),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_agree(name, as_map, randn):
    value, function = RIGHT[name]
    for seed in SEEDS:
        found = sweep_input(as_map(function, [value(randn, seed)]), 0, seed=seed)
        assert found.verdict == AGREES, seed
        assert found.pair.resolution < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.relu, F.gelu, lambda x: x.softmax(-1), lambda x: (30 * x).sin(), torch.log],
)
def test_no_false_alarm_in_low_precision(function, dtype, as_map, randn):
    for seed in SEEDS:
        x = randn(6, 8, seed=seed).abs().to(dtype)
        assert sweep_input(as_map(function, [x]), 0, seed=seed).verdict in (AGREES, UNSURE), seed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_agrees_and_finds_factors(dtype, as_map, randn):
    found = []
    for seed in SEEDS:
        x = randn(6, 8, seed=seed, dtype=dtype)
        found.append(sweep_input(as_map(torch.exp, [x]), 0, seed=seed).verdict)
        wrong = as_map(torch.exp, [x], faults={0: lambda g: 2 * g})
        assert sweep_input(wrong, 0, seed=seed).verdict == DIFFERS
    assert found.count(AGREES) >= 18


@pytest.mark.parametrize(
    "function",
    [torch.relu, torch.abs, lambda x: x.relu().sum(), lambda x: x.amax(-1), lambda x: x.norm()],
)
def test_kinks_are_no_faults(function, as_map, randn):
    for seed in SEEDS:
        x = randn(5, 4, seed=seed).round().clamp(-1, 1) * 0.0
        x[0] = randn(4, seed=seed)
        found = sweep_input(as_map(function, [x]), 0, seed=seed)
        assert found.verdict in (AGREES, UNSURE), seed
        if found.verdict == UNSURE:
            assert found.note == KINKS


def test_kinked_outputs_are_left_out(as_map):
    x = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64)
    found = sweep_input(as_map(torch.relu, [x]), 0, seed=0)
    assert (found.verdict, found.kinked, found.note) == (AGREES, 1, KINKS)
    wrong = sweep_input(as_map(torch.relu, [x], faults={0: lambda g: 2 * g}), 0, seed=0)
    assert wrong.verdict == DIFFERS


def test_noise_of_float32_inside_is_measured(as_map, randn):
    for seed in SEEDS:
        found = sweep_input(
            as_map(lambda x: x.float().exp().double(), [randn(9, seed=seed)]), 0, seed=seed
        )
        assert 2.0**-26 < found.kappa * found.unit < 2.0**-20
        states = [point.state for point in found.points]
        assert states[:10] == [OK] * 10
        assert states[-8:] == [UNCHANGED] * 8


def test_piecewise_constant_functions_have_slope_zero(as_map, randn):
    function = lambda x: (16 * x).round() / 16  # noqa: E731
    x = randn(30)
    found = sweep_input(as_map(function, [x], vjp=lambda v, x: [v]), 0, seed=0)
    assert found.verdict == DIFFERS
    assert found.pair.measured == pytest.approx(0.0, abs=found.pair.bar)
    assert {point.state for point in found.points} == {OK}
    assert sweep_input(as_map(function, [x], vjp=lambda v, x: [0 * v]), 0, seed=0).verdict == AGREES


def test_states_of_steps_that_leave_the_domain(as_map):
    x = torch.tensor([1e-4, 1.0], dtype=torch.float64)

    def complaining(t):
        if bool((t <= 0).any()):
            raise ValueError("not positive")
        return t.log()

    for function, state in ((torch.log, NOT_FINITE), (complaining, RAISED)):
        found = sweep_input(as_map(function, [x]), 0, seed=0)
        states = [point.state for point in found.points]
        assert states[0] == state
        assert states[-1] == OK
        assert states == [state] * states.count(state) + [OK] * states.count(OK)
        assert math.isnan(found.points[0].residual)


def test_a_claim_that_is_not_finite_can_not_be_judged(as_map):
    x = torch.ones(3, dtype=torch.float64)
    found = sweep_input(as_map(torch.exp, [x], vjp=lambda v, x: [v * math.inf]), 0, seed=0)
    assert (found.verdict, found.note, found.points) == (UNSURE, CLAIM_NOT_FINITE, [])


def test_functions_without_a_derivative_are_unsure(as_map):
    zero = torch.zeros(3, dtype=torch.float64)
    for function in (lambda x: (x >= 0).double(), lambda x: x.sign() * x.abs() ** (1 / 3)):
        found = sweep_input(as_map(function, [zero], vjp=lambda v, x: [v]), 0, seed=0)
        assert found.verdict == UNSURE


def test_the_seed_alone_decides(as_map, randn):
    function = as_map(torch.exp, [randn(4)])
    first, again, other = (sweep_input(function, 0, seed=seed) for seed in (3, 3, 4))
    assert first.points == again.points
    assert first.points != other.points


def test_directions_stay_in_the_domain(as_map, randn):
    # Cholesky reads one triangle; its gradient is that of symmetric changes.
    for seed in SEEDS:
        a = randn(4, 4, seed=seed)
        found = as_map(torch.linalg.cholesky, [a @ a.mT + torch.eye(4)])
        assert sweep_input(found, 0, seed=seed).verdict == DIFFERS
        found.project = [lambda u: (u + u.mT) / 2]
        assert sweep_input(found, 0, seed=seed).verdict == AGREES
