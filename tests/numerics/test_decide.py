"""Decisions: what disagrees is confirmed, kinks prove nothing, no false alarm over many seeds."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.decide import decide
from gradlint.numerics.kinks import NUDGE, nudge
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED, UNSURE

F = torch.nn.functional
SEEDS = range(20)


def with_zeros(randn, seed, *shape):
    """Normal numbers, about a third of them exactly 0."""
    x = randn(*shape, seed=seed)
    return torch.where(x.abs() < 0.45, torch.zeros_like(x), x)


def with_ties(randn, seed, *shape):
    """Small integers: rows with several equal largest elements are common."""
    return randn(*shape, seed=seed).round().clamp(-1, 1)


# Name → (values by seed, function). Every gradient is autograd's own, hence a valid one.
KINKED = {
    "relu at 0": (lambda r, s: [with_zeros(r, s, 5, 4)], torch.relu),
    "relu at 0 everywhere": (lambda r, s: [torch.zeros(4, 3).double()], torch.relu),
    "sum of relu at 0": (lambda r, s: [with_zeros(r, s, 5, 4)], lambda x: x.relu().sum()),
    "abs at 0": (lambda r, s: [with_zeros(r, s, 6)], torch.abs),
    "amax with ties": (lambda r, s: [with_ties(r, s, 6, 5)], lambda x: x.amax(-1)),
    "max with ties": (lambda r, s: [with_ties(r, s, 6, 5)], lambda x: x.max(-1).values),
    "almost a tie": (lambda r, s: [1 + 1e-7 * r(6, 5, seed=s)], lambda x: x.amax(-1)),
    "equal arguments of maximum": (lambda r, s: [r(4, 3, seed=s)] * 2, torch.maximum),
    "max pooling": (lambda r, s: [r(2, 3, 9, seed=s)], lambda x: F.max_pool1d(x, 3, 1)),
    "clamp at its edges": (
        lambda r, s: [r(4, 7, seed=s).clamp(-0.5, 0.5)],
        lambda x: x.clamp(-0.5, 0.5),
    ),
    "norm of a zero row": (
        lambda r, s: [torch.cat([r(2, 5, seed=s), torch.zeros(1, 5).double()])],
        lambda x: x.norm(dim=-1),
    ),
    "sorting": (lambda r, s: [r(4, 7, seed=s)], lambda x: x.sort(-1).values),
    "smooth l1 at its joints": (
        lambda r, s: [torch.tensor([1.0, -1.0, 0.5, 0.0]).double()],
        lambda x: F.smooth_l1_loss(x, torch.zeros_like(x), reduction="none"),
    ),
    "fractional part": (lambda r, s: [3 * r(5, 4, seed=s)], lambda x: torch.fmod(x, 1.0)),
    "steep at 0": (lambda r, s: [r(8, seed=s)], lambda x: x.abs().sqrt()),
}


@pytest.mark.parametrize("name", KINKED)
def test_kinks_are_no_faults(name, as_map, randn):
    values, function = KINKED[name]
    for seed in SEEDS:
        found = decide(as_map(function, values(randn, seed)), seed=seed)
        assert set(found.verdicts) == {AGREES}, seed


@pytest.mark.parametrize("name", KINKED)
def test_faults_beside_kinks_are_found(name, as_map, randn):
    values, function = KINKED[name]
    for seed in range(5):
        planted = as_map(function, values(randn, seed), faults={0: lambda g: -1.5 * g - 0.3})
        assert decide(planted, seed=seed).verdicts[0] == DIFFERS, seed


def test_kinked_outputs_are_counted(as_map):
    x = torch.tensor([0.0, 1.0, -1.0, 0.0], dtype=torch.float64)
    found = decide(as_map(torch.relu, [x]), seed=0)
    assert found.kinked == 2
    assert found.verdicts == [AGREES]
    assert "2 of 4 outputs have a kink" in found.notes[0]


STOCHASTIC = {
    "dropout": lambda x: F.dropout(x.exp(), 0.5),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel softmax": F.gumbel_softmax,
    "noise added": lambda x: x.exp() + torch.randn_like(x),
}


@pytest.mark.parametrize("name", STOCHASTIC)
def test_common_random_numbers_make_one_function(name, as_map, randn):
    def function(x):
        torch.default_generator.manual_seed(7)  # torch.manual_seed takes milliseconds
        return STOCHASTIC[name](x)

    for seed in SEEDS:
        found = decide(as_map(function, [randn(5, 4, seed=seed)]), seed=seed)
        assert found.verdicts == [AGREES], seed
        wrong = as_map(function, [randn(5, 4, seed=seed)], faults={0: lambda g: g * 1.01})
        assert decide(wrong, seed=seed).verdicts == [DIFFERS], seed


LOW = {
    "exp": (torch.exp, [(6, 8)]),
    "matmul": (torch.matmul, [(5, 16), (16, 7)]),
    "layer norm": (lambda x: F.layer_norm(x, (16,)), [(5, 16)]),
    "relu": (torch.relu, [(6, 8)]),
    "max pooling": (lambda x: F.max_pool1d(x, 3, 1), [(2, 3, 9)]),
    "quotient": (torch.div, [(6, 8), (6, 8)]),
    "sin(30·x)": (lambda x: (30 * x).sin(), [(6, 8)]),
    "x + 100": (lambda x: x + 100, [(6, 8)]),
    "constant": (lambda x: 0 * x + 3, [(6, 8)]),
    "sign": (torch.sign, [(6, 8)]),
    "attention": (F.scaled_dot_product_attention, [(2, 5, 4)] * 3),
    "norm": (lambda x: x.norm(), [(5, 16)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", LOW)
def test_no_false_alarm_in_low_precision(name, dtype, as_map, randn):
    function, shapes = LOW[name]
    agreed = 0
    for seed in SEEDS:
        values = [randn(*s, seed=100 * seed + k, dtype=dtype) for k, s in enumerate(shapes)]
        verdicts = decide(as_map(function, values), seed=seed).verdicts
        assert set(verdicts) <= {AGREES, UNSURE, ROUNDED}, (seed, verdicts)
        agreed += verdicts == [AGREES] * len(shapes)
    if dtype == torch.float32:
        assert agreed >= 15


def test_what_is_not_there_again_is_unsure(as_map, randn):
    calls = []

    def once(v, x):  # wrong for the first judgement's four cotangents only
        calls.append(None)
        return [v * x.exp() * (1.1 if len(calls) <= 4 else 1.0)]

    found = decide(as_map(torch.exp, [randn(4)], vjp=once), seed=0)
    assert found.verdicts == [UNSURE]
    assert "not again" in found.notes[0]


def test_right_gradients_are_not_judged_twice(as_map, randn):
    calls = []

    def vjp(v, x):
        calls.append(None)
        return [v * x.exp()]

    found = decide(as_map(torch.exp, [randn(4)], vjp=vjp), seed=0)
    assert found.verdicts == [AGREES]
    assert len(calls) == 3
    assert found.confirmed == {}


def test_only_the_inputs_asked_for_are_decided(as_map, randn):
    planted = as_map(torch.mul, [randn(3), randn(3, seed=1)], faults={0: torch.neg})
    assert decide(planted, seed=0, inputs=[1]).verdicts == [AGREES]
    assert decide(planted, seed=0).verdicts == [DIFFERS, AGREES]
    assert list(decide(planted, seed=0).confirmed) == [0]


def test_nudge_moves_a_little_and_respects_the_function(as_map, randn):
    x = randn(50)
    moved = nudge(as_map(torch.exp, [x]), seed=3)
    shift = (moved.values[0] - x).abs() / x.abs().clamp_min(0.1 * float(x.square().mean().sqrt()))
    assert 0.4 * NUDGE < float(shift.min()) < float(shift.max()) <= NUDGE * 1.001
    assert torch.equal(moved.outputs[0], moved.values[0].exp())
    complaining = as_map(torch.exp, [x])
    complaining.evaluate = lambda values: None
    assert nudge(complaining, seed=3) is None


def with_distant_kinks(x):
    """A polynomial between its kinks: the coarsest steps have the smallest error bars, and reach
    for kinks that the sample is not at."""
    return (x[:, 1:] - x[:, :-1]).square().sum() + (x[1:] - x[:-1]).abs().sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_distant_kink_is_no_excuse(as_map, randn, seed):
    x = randn(4, 4, seed=seed)
    assert decide(as_map(with_distant_kinks, [x]), seed=seed).verdicts == [AGREES]
    wrong = as_map(with_distant_kinks, [x], faults={0: torch.zeros_like})
    assert decide(wrong, seed=seed).verdicts == [DIFFERS]


def test_one_wrong_element_of_many_is_caught_in_single_precision(as_map, randn):
    """A judgement sees it along some of its directions only, and not in every one."""

    def planted(gradient):
        gradient = gradient.clone()
        gradient.view(-1)[5432] = 0.0
        return gradient

    a, b = randn(100, 100).float(), randn(100, 100, seed=1).float()
    found = [
        decide(as_map(torch.matmul, [a, b], faults={0: planted}), seed=seed).verdicts[0]
        for seed in range(3)
    ]
    assert found == [DIFFERS] * 3
