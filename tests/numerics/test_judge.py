"""Verdicts: planted faults are found, right gradients never called wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from gradlint.numerics.decide import decide
from gradlint.numerics.judge import judge
from gradlint.numerics.map import working_bits
from gradlint.numerics.pair import Pair
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED, UNSURE

F = torch.nn.functional
SEEDS = range(20)

# Operators with several inputs and shapes: name → (function, shapes of the inputs).
OPERATORS = {
    "exp": (torch.exp, [(4, 3)]),
    "product": (torch.mul, [(4, 3), (3,)]),
    "linear": (F.linear, [(4, 3), (5, 3), (5,)]),
    "square matmul": (torch.matmul, [(5, 5), (5, 5)]),
    "conv": (F.conv1d, [(2, 3, 9), (4, 3, 3)]),
    "layer norm": (lambda x, w: F.layer_norm(x, (6,), w), [(3, 6), (6,)]),
    "softmax": (lambda x: x.softmax(-1), [(4, 5)]),
    "two outputs": (lambda x, y: (x**2 + y**2, x * y), [(3, 4), (3, 4)]),
    "scalar": (lambda x: x.tanh().sum(), [(7,)]),
    "zero dimensional": (torch.sin, [()]),
    "large": (lambda x: (x * x.roll(1)).sin(), [(60, 70)]),
}


def half_the_last(g):
    if g.dim() == 0:
        return g / 2
    g[..., -1] /= 2
    return g


def zero_one(g):
    """The element of median size becomes zero: neither the largest, nor one without weight."""
    flat = g.reshape(-1)
    flat[int(flat.abs().argsort()[flat.numel() // 2])] = 0.0
    return flat.reshape(g.shape)


FAULTS = {
    "a hundredth more": lambda g: g * 1.01,
    "one in 1e4 more": lambda g: g * (1 + 1e-4),
    "factor 2": lambda g: g * 2,
    "sign": lambda g: -g,
    "zero": torch.zeros_like,
    "absolute value": lambda g: g.abs() if bool((g < 0).any()) else -g,
    "one element": zero_one,
    "last slice": half_the_last,
    "shifted": lambda g: g + 1e-2 * g.abs().max(),
    "rolled": lambda g: g.roll(1, -1) if g.dim() and g.shape[-1] > 1 else g * 1.1,
}


def values_of(shapes, randn, seed, dtype=torch.float64):
    return [randn(*shape, seed=100 * seed + k, dtype=dtype) for k, shape in enumerate(shapes)]


@pytest.mark.parametrize("name", OPERATORS)
def test_right_gradients_agree_at_a_stated_power(name, as_map, randn):
    function, shapes = OPERATORS[name]
    for seed in SEEDS if name != "large" else range(3):
        found = judge(as_map(function, values_of(shapes, randn, seed)), seed=seed)
        assert [item.verdict for item in found.inputs] == [AGREES] * len(shapes)
        assert found.inputs[0].sharpness < 1e-7


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_planted_fault_is_found_and_blamed_on_its_input(name, fault, as_map, randn):
    function, shapes = OPERATORS[name]
    for seed in range(5 if name != "large" else 1):
        for index in range(len(shapes)):
            values = values_of(shapes, randn, seed)
            planted = as_map(function, values, faults={index: FAULTS[fault]})
            verdicts = [item.verdict for item in judge(planted, seed=seed).inputs]
            expected = [DIFFERS if k == index else AGREES for k in range(len(shapes))]
            assert verdicts == expected, (seed, index)


@pytest.mark.parametrize("seed", SEEDS)
def test_transposed_and_swapped_gradients(seed, as_map, randn):
    a, b = randn(4, 4, seed=seed), randn(4, 4, seed=seed + 50)
    transposed = as_map(torch.matmul, [a, b], vjp=lambda v, a, b: [v @ b.mT, (a.mT @ v).mT])
    assert [i.verdict for i in judge(transposed, seed=seed).inputs] == [AGREES, DIFFERS]
    swapped = as_map(torch.mul, [a, b], vjp=lambda v, a, b: [v * a, v * b])
    assert [i.verdict for i in judge(swapped, seed=seed).inputs] == [DIFFERS, DIFFERS]


@pytest.mark.parametrize("seed", SEEDS)
def test_ignored_and_passed_on_grad_output(seed, as_map, randn):
    x = randn(5, seed=seed)
    for vjp in (lambda v, x: [x.exp()], lambda v, x: [v], lambda v, x: [v.abs() * x.exp()]):
        assert judge(as_map(torch.exp, [x], vjp=vjp), seed=seed).inputs[0].verdict == DIFFERS


def test_straight_through_estimators_differ(as_map, randn):
    for function in (torch.round, torch.sign, lambda x: (16 * x).floor() / 16):
        for seed in range(5):
            planted = as_map(function, [randn(20, seed=seed) * 3], vjp=lambda v, x: [v])
            assert judge(planted, seed=seed).inputs[0].verdict == DIFFERS
            honest = as_map(function, [randn(20, seed=seed) * 3], vjp=lambda v, x: [0 * v])
            assert judge(honest, seed=seed).inputs[0].verdict == AGREES


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        (lambda z: z**2, lambda v, z: [v * (2 * z).conj()], lambda v, z: [v * 2 * z]),
        (torch.exp, lambda v, z: [v * z.exp().conj()], lambda v, z: [v * z.exp()]),
        (torch.conj, lambda v, z: [v.conj()], lambda v, z: [v]),
        (
            lambda z: (z * z.conj()).real,
            lambda v, z: [2 * v * z],
            lambda v, z: [2 * v * z.conj()],
        ),
        (torch.abs, lambda v, z: [v * z / z.abs()], lambda v, z: [v * (z / z.abs()).conj()]),
        (
            lambda z: z.real,
            lambda v, z: [v.to(z.dtype)],
            lambda v, z: [v.to(z.dtype) * (1 + 1e-3j)],
        ),
    ],
    ids=["square", "exp", "conj", "squared modulus", "modulus", "real part"],
)
def test_complex_gradients_follow_the_conjugate_convention(function, right, wrong, as_map, randn):
    for seed in SEEDS:
        z = randn(6, seed=seed, dtype=torch.complex128)
        assert judge(as_map(function, [z], vjp=right), seed=seed).inputs[0].verdict == AGREES
        assert judge(as_map(function, [z], vjp=wrong), seed=seed).inputs[0].verdict == DIFFERS


def test_one_wrong_element_of_many_is_seen(as_map, randn):
    # The tolerance must not grow with the size of the tensor.
    x = randn(300, 400)
    for place in (0, 51_234, 119_999):

        def fault(g, place=place):
            g.view(-1)[place] *= 1.1
            return g

        found = judge(as_map(torch.exp, [x], faults={0: fault}), seed=place)
        assert found.inputs[0].verdict == DIFFERS


@pytest.mark.parametrize(("error", "verdict"), [(1e-5, DIFFERS), (1e-7, ROUNDED), (0.0, AGREES)])
def test_errors_at_the_tolerance(error, verdict, as_map, randn):
    for seed in SEEDS:
        planted = as_map(torch.exp, [randn(5, seed=seed)], faults={0: lambda g: g * (1 + error)})
        assert judge(planted, seed=seed).inputs[0].verdict == verdict


# Right gradients that a careless checker calls wrong: name → (function of seed → value, function).
NEAR_MISSES = {
    "x + 1e8": (lambda r, s: r(5, 4, seed=s), lambda x: x + 1e8),
    "(x + 1e8)²": (lambda r, s: r(5, 4, seed=s), lambda x: (x + 1e8) ** 2),
    "(x − 1e8)²": (lambda r, s: r(5, 4, seed=s) + 1e8, lambda x: (x - 1e8) ** 2),
    "constant": (lambda r, s: r(5, 4, seed=s), lambda x: 0 * x + 3),
    "log near 0": (lambda r, s: r(5, seed=s).abs() * 1e-9, torch.log),
    "log off its domain at coarse steps": (lambda r, s: r(6, seed=s).abs() + 1e-2, torch.log),
    "sqrt": (lambda r, s: r(6, seed=s).abs() + 1e-3, torch.sqrt),
    "reciprocal": (lambda r, s: r(30, seed=s), torch.reciprocal),
    "tan": (lambda r, s: 3 * r(30, seed=s), torch.tan),
    "saturated softmax": (lambda r, s: 100 * r(5, 6, seed=s), lambda x: x.softmax(-1)),
    "large logsumexp": (lambda r, s: 50 * r(5, 6, seed=s), lambda x: x.logsumexp(-1)),
    "std of shifted": (lambda r, s: r(3, 5, seed=s) + 1000, lambda x: x.std(-1)),
    "batch norm near eps": (
        lambda r, s: 1e-4 * r(6, 5, seed=s),
        lambda x: F.batch_norm(x, None, None, training=True),
    ),
    "product with zeros": (
        lambda r, s: r(4, 6, seed=s).index_fill(1, torch.tensor([s % 6]), 0.0),
        lambda x: x.prod(-1),
    ),
    "16 decades": (
        lambda r, s: r(8, seed=s) * torch.logspace(-8, 8, 8, dtype=torch.float64),
        lambda x: x**2,
    ),
    "outputs of 24 decades": (
        lambda r, s: r(8, seed=s),
        lambda x: (1e-12 * x, 1e12 * x.exp(), x.sin()),
    ),
    "1e150": (lambda r, s: 1e150 * r(8, seed=s), lambda x: x * x),
    "1e-150": (lambda r, s: 1e-150 * r(8, seed=s), lambda x: x * x),
    "sin(1e3·x)": (lambda r, s: r(5, 4, seed=s), lambda x: (1e3 * x).sin()),
    "exp summed over 2000": (lambda r, s: r(40, 50, seed=s), lambda x: (x * x).exp().sum()),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_pass(name, as_map, randn):
    value, function = NEAR_MISSES[name]
    for seed in SEEDS:
        found = judge(as_map(function, [value(randn, seed)]), seed=seed).inputs[0]
        assert found.sharpness < 1e-3
        # A saturated gradient may be nothing beside the outputs: then nothing is passed.
        lost = found.resolution > 1e-3
        assert found.verdict == (UNSURE if lost else AGREES), seed
        assert not lost or name == "saturated softmax"


def test_a_gradient_that_is_nothing_beside_the_outputs_is_not_passed(as_map):
    x = torch.tensor([[200.0, 0.0, -100.0]], dtype=torch.float64)
    function = as_map(lambda x: x.softmax(-1), [x])
    found = judge(function, seed=0).inputs[0]
    assert found.verdict == UNSURE
    assert found.resolution > 1.0
    assert decide(function, seed=0).notes[0].startswith("its gradient is tiny compared")


FLOAT32_INSIDE = {
    "exp": lambda x: x.float().exp().double(),
    "layer norm": lambda x: F.layer_norm(x.float(), (8,)).double(),
    "softmax": lambda x: x.float().softmax(-1).double(),
    "matmul": lambda x: (x.float() @ torch.ones(8, 4)).double(),
}


@pytest.mark.parametrize("name", FLOAT32_INSIDE)
def test_float32_inside_float64_is_noise_and_no_fault(name, as_map, randn):
    for seed in SEEDS:
        x = randn(5, 8, seed=seed)
        right = judge(as_map(FLOAT32_INSIDE[name], [x]), seed=seed).inputs[0]
        assert right.verdict == AGREES
        assert 1e-7 < right.resolution < 3e-2  # float32's
        assert 1e6 < right.kappa < 1e11
        wrong = as_map(FLOAT32_INSIDE[name], [x], faults={0: lambda g: g * 1.05})
        assert judge(wrong, seed=seed).inputs[0].verdict == DIFFERS


LOW = {
    "exp": (torch.exp, [(6, 8)]),
    "matmul": (torch.matmul, [(5, 16), (16, 7)]),
    "layer norm": (lambda x: F.layer_norm(x, (16,)), [(5, 16)]),
    "softmax": (lambda x: x.softmax(-1), [(5, 16)]),
    "gelu": (F.gelu, [(6, 8)]),
    "logsumexp": (lambda x: x.logsumexp(-1), [(5, 16)]),
}


@pytest.mark.parametrize("name", LOW)
def test_right_gradients_in_float32_agree(name, as_map, randn):
    function, shapes = LOW[name]
    for seed in SEEDS:
        found = judge(as_map(function, values_of(shapes, randn, seed, torch.float32)), seed=seed)
        assert [item.verdict for item in found.inputs] == [AGREES] * len(shapes)
        assert found.resolution < 5e-3


@pytest.mark.parametrize("name", LOW)
@pytest.mark.parametrize("fault", ["factor 2", "sign", "zero", "a hundredth more"])
def test_faults_in_float32_are_found(name, fault, as_map, randn):
    function, shapes = LOW[name]
    for seed in range(5):
        values = values_of(shapes, randn, seed, torch.float32)
        found = judge(as_map(function, values, faults={0: FAULTS[fault]}), seed=seed)
        assert found.inputs[0].verdict == DIFFERS, seed


@pytest.mark.parametrize("fault", ["factor 2", "sign"])
def test_gross_faults_in_half_precision_are_found(fault, as_map, randn):
    for seed in range(10):
        for dtype in (torch.bfloat16, torch.float16):
            x = randn(6, 8, seed=seed, dtype=dtype)
            planted = as_map(torch.exp, [x], faults={0: FAULTS[fault]})
            assert judge(planted, seed=seed).inputs[0].verdict == DIFFERS, (seed, dtype)


@pytest.mark.parametrize("frequency", [1e5, 1e6, 1e7, 1e9])
def test_functions_that_no_step_resolves_are_never_called_wrong(frequency, as_map, randn):
    for seed in SEEDS:
        x = randn(5, 4, seed=seed)
        found = judge(as_map(lambda x: (frequency * x).sin(), [x]), seed=seed).inputs[0]
        assert found.verdict in (AGREES, UNSURE), seed


def test_jumps_and_vertical_tangents_are_unsure(as_map):
    zero = torch.zeros(3, dtype=torch.float64)
    for function in (lambda x: (x >= 0).double(), lambda x: x.sign() * x.abs() ** (1 / 3)):
        claimed = as_map(function, [zero], vjp=lambda v, x: [v])
        assert judge(claimed, seed=0).inputs[0].verdict == UNSURE


def test_degenerate_inputs(as_map):
    empty = torch.zeros(0, 3, dtype=torch.float64)
    found = judge(as_map(torch.exp, [empty]), seed=0)
    assert found.inputs[0].verdict == AGREES
    assert found.inputs[0].pairs == []
    nan = as_map(torch.exp, [torch.ones(3)], vjp=lambda v, x: [x * math.nan])
    assert judge(nan, seed=0).inputs[0].verdict == UNSURE
    unused = as_map(lambda x, y: x.exp(), [torch.ones(3).double(), torch.ones(3).double()])
    assert [item.verdict for item in judge(unused, seed=0).inputs] == [AGREES, AGREES]


def test_a_missing_dependence_is_found(as_map):
    values = [torch.full((3,), 0.5, dtype=torch.float64)] * 2
    planted = as_map(torch.mul, values, vjp=lambda v, x, y: [v * y, None])
    assert [item.verdict for item in judge(planted, seed=0).inputs] == [AGREES, DIFFERS]


def test_inputs_and_masks_limit_what_is_judged(as_map, randn):
    def wrong_second(v, w, x):
        return [v * x.exp() + w * 2 * x.cos()]

    values = [randn(4)]
    planted = as_map(lambda x: (x.exp(), x.sin()), values, vjp=wrong_second)
    assert judge(planted, seed=0).inputs[0].verdict == DIFFERS
    masks = [torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)]
    assert judge(planted, seed=0, masks=masks).inputs[0].verdict == AGREES
    two = as_map(torch.mul, [randn(3), randn(3, seed=1)])
    assert [item.index for item in judge(two, seed=0, inputs=[1]).inputs] == [1]


def test_the_seed_alone_decides(as_map, randn):
    function = as_map(torch.exp, [randn(4)])
    first, again, other = (judge(function, seed=seed).inputs[0] for seed in (3, 3, 4))
    assert first.pairs == again.pairs
    assert first.pairs != other.pairs


def test_pair_arithmetic():
    pair = Pair(
        "signs",
        claimed=1.0,
        measured=1.5,
        bar=0.1,
        sigma=0.01,
        scale=2.0,
        h=0.1,
        worth=1.0,
        tolerated=0.1,
    )
    assert (pair.error, pair.sharpness, pair.clarity) == (0.5, 0.05, 5.0)
    assert pair.differs
    assert pair.resolution == pytest.approx(0.3)  # 0.1 of error bar, 0.1 × 2 tolerated
    assert not replace(pair, tolerated=0.3).differs
    assert replace(pair, tolerated=1.0).resolution == pytest.approx(1.0)  # ten error bars
    assert not Pair("signs").differs
    assert Pair("signs").resolution == math.inf
    assert Pair("signs", bar=0.0, h=0.1).resolution < 1e-15


@pytest.mark.parametrize(
    ("inside", "outside", "bits"),
    [
        (torch.float64, torch.float64, 53),
        (torch.float64, torch.float32, 24),
        (torch.bfloat16, torch.float32, 8),
        (torch.float64, torch.int64, 53),
        (torch.complex64, torch.float64, 24),
    ],
)
def test_working_bits_are_those_of_the_coarsest(inside, outside, bits, as_map):
    x = torch.ones(2, dtype=inside)
    real = as_map(lambda t: (t.real if t.is_complex() else t).to(outside), [x])
    assert working_bits(real, x) == bits


def test_a_pass_needs_resolving_power(as_map, randn):
    # Noise of 1e-4: a gradient 1 % wrong could not be told from a right one.
    noisy = lambda x: x.exp() + 1e-4 * (1e12 * x).sin()  # noqa: E731
    for seed in SEEDS:
        x = randn(6, seed=seed)
        claims = {UNSURE: 1.0, DIFFERS: 3.0}
        for verdict, factor in claims.items():
            planted = as_map(noisy, [x], vjp=lambda v, x, factor=factor: [factor * v * x.exp()])
            found = judge(planted, seed=seed).inputs[0]
            assert found.verdict == verdict, seed
        assert found.resolution > 1e-3


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, AGREES), (1.0001, ROUNDED), (1.01, DIFFERS)])
def test_a_small_gradient_beside_large_outputs_is_judged_by_its_own_size(
    factor, verdict, as_map, randn
):
    """sin(x) beside 1e6, a thousandth of it: 1 % of the gradient is 1e-11 of the outputs."""
    for seed in SEEDS:
        function = as_map(
            lambda x: 1e6 + 1e-3 * x.sin(),
            [randn(3, 4, seed=seed)],
            faults={0: lambda gradient: factor * gradient},
        )
        found = judge(function, seed=seed).inputs[0]
        assert found.resolution < 0.01
        assert found.verdict in ((AGREES, UNSURE) if factor < 1.001 else (verdict,)), seed
        if verdict == DIFFERS:
            assert decide(function, seed=seed).verdicts == [DIFFERS]
