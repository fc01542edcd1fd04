"""Causes: each planted fault is named, and what no cause explains stays without one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gradlint.diagnosis._factors import meaning, recognised
from gradlint.diagnosis._whole import scaled
from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import Evidence, unravel, wrong_elements
from gradlint.diagnosis.response import NOT_LINEAR
from gradlint.numerics.directions import cotangent
from gradlint.numerics.elements import Residuals, measure_elements
from gradlint.numerics.map import Map

NAMES = ["x", "weight", "bias"]


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(500 + seed)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(shape, generator=generator, dtype=wide).to(dtype)


def evidence_of(true, returned, *, index=0, others=(), cotangents=None, noise=0.0, elements=None):
    """Evidence under as many cotangents as there are gradients in ``true``.

    Args:
        true: the derivative of input ``index``, one a cotangent.
        returned: what backward returned for it, one a cotangent.
        others: per cotangent, what backward returned for the other inputs.
        elements: flat positions that were measured; default all.
    """
    found = []
    for k, (right, claim) in enumerate(zip(true, returned, strict=True)):
        claimed = list(others[k]) if others else []
        claimed.insert(index, claim)
        flat = right.reshape(-1).to(torch.complex128 if right.is_complex() else torch.float64)
        chosen = torch.arange(flat.numel()) if elements is None else torch.tensor(elements)
        measured = flat[chosen] + noise * draw(len(chosen), seed=90 + k)
        bars = torch.full((len(chosen),), max(1e-10, 5 * noise), dtype=torch.float64)
        v = cotangents[k] if cotangents else draw(7, seed=20 + k)
        found.append(Evidence(index, NAMES[: len(claimed)], claimed, chosen, measured, bars, [v]))
    return found


def pair_of(*shape, dtype=torch.float64):
    return [draw(*shape, seed=k, dtype=dtype) for k in range(2)]


def zero_at(g, *place):
    g = g.clone()
    g[place] = 0.0
    return g


PLANTED = {
    "sign": (lambda g: -g, (4, 3), "sign"),
    "sign of a scalar": (lambda g: -g, (), "sign"),
    "factor 2 missing": (lambda g: g / 2, (4, 3), "scaled"),
    "one per cent": (lambda g: 1.01 * g, (4, 3), "scaled"),
    "mean instead of sum": (lambda g: g / g.numel(), (4, 3), "scaled"),
    "transposed": (lambda g: g.mT, (4, 4), "transposed"),
    "transposed batch": (lambda g: g.mT, (2, 3, 3), "transposed"),
    "transposed and reshaped": (lambda g: g.mT.reshape(g.shape), (4, 3), "transposed"),
    "zero": (torch.zeros_like, (4, 3), "zero"),
    "one element": (lambda g: zero_at(g, 2, 1), (4, 3), "one-element"),
    "last column": (lambda g: zero_at(g, slice(None), -1), (4, 5), "one-slice"),
    "first row": (lambda g: zero_at(g, 0), (4, 5), "one-slice"),
    "one plane": (lambda g: zero_at(g, slice(None), 1), (3, 4, 2), "one-slice"),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_planted_faults_are_named(name, noise):
    fault, shape, slug = PLANTED[name]
    true = pair_of(*shape)
    cause = diagnose(evidence_of(true, [fault(g) for g in true], noise=noise))
    assert cause is not None
    assert cause.slug == slug
    assert cause.text.startswith(slug)
    assert cause.help
    assert cause.misfit < 1e-5


def test_conjugate_missing():
    true = pair_of(5, dtype=torch.complex128)
    cause = diagnose(evidence_of(true, [g.conj() for g in true]))
    assert cause.slug == "conjugate"
    assert ".conj()" in cause.help


def test_swapped_between_inputs_of_one_shape():
    own, other = pair_of(4, 3), [draw(4, 3, seed=k + 5) for k in range(2)]
    cause = diagnose(evidence_of(own, other, others=[[g] for g in own]))
    assert cause.slug == "swapped"
    assert "`weight`" in cause.text
    assert "`x`" in cause.help


def test_inputs_of_other_shapes_are_never_swapped():
    own = pair_of(4, 3)
    others = [[draw(3, 4, seed=7)], [draw(3, 4, seed=8)]]
    assert diagnose(evidence_of(own, [2.5 * g + 1 for g in own], others=others)) is None


def test_ignored_grad_output():
    derivative, cotangents = draw(6), [draw(6, seed=3), draw(6, seed=4)]
    true = [v * derivative for v in cotangents]
    cause = diagnose(evidence_of(true, [derivative, derivative], cotangents=cotangents))
    assert cause.slug == "ignores-grad-output"


def test_the_same_gradient_under_one_cotangent_is_no_evidence_of_ignoring_it():
    derivative, v = draw(6), draw(6, seed=3)
    true = [v * derivative]
    cause = diagnose(evidence_of(true, [derivative], cotangents=[v]))
    assert cause is None or cause.slug != "ignores-grad-output"


def test_grad_output_passed_on():
    derivative, cotangents = draw(6), [draw(6, seed=3), draw(6, seed=4)]
    true = [v * derivative for v in cotangents]
    cause = diagnose(evidence_of(true, cotangents, cotangents=cotangents))
    assert cause.slug == "straight-through"
    assert "derivative of forward is not 1" in cause.text
    assert "surrogate" in cause.help


def test_piecewise_constant_forward():
    cotangents = [draw(6, seed=3), draw(6, seed=4)]
    true = [torch.zeros(6).double()] * 2
    cause = diagnose(evidence_of(true, cotangents, cotangents=cotangents))
    assert cause.slug == "straight-through"
    assert "piecewise constant" in cause.text
    assert 'surrogate = {"x"' in cause.help


@pytest.mark.parametrize(
    "fault",
    [
        lambda g: g + 0.1 * g**2,
        lambda g: g.abs(),
        lambda g: g**2,
        lambda g: g.sort(0).values,
        lambda g: torch.where(g > 0, 2 * g, g / 3),
    ],
)
def test_what_no_hypothesis_explains_has_no_cause(fault):
    true = pair_of(4, 3)
    assert diagnose(evidence_of(true, [fault(g) for g in true])) is None


def test_a_hypothesis_must_hold_under_both_cotangents():
    true = pair_of(4, 3)
    assert diagnose(evidence_of(true, [-true[0], true[1] * 3])) is None
    assert diagnose(evidence_of(true, [2 * true[0], true[1] / 2])) is None


@pytest.mark.parametrize("seed", range(20))
def test_near_transpositions_are_no_transpositions(seed):
    g = draw(4, 4, seed=seed)
    almost = g.mT.clone()
    almost[1, 2] += 1e-3
    found = diagnose(evidence_of([g, 2 * g], [almost, 2 * almost]))
    assert found is None or found.slug != "transposed"


def test_symmetric_gradients_are_not_blamed_on_transposition():
    symmetric = [g + g.mT for g in pair_of(3, 3)]
    cause = diagnose(evidence_of(symmetric, [g / 3 for g in symmetric]))
    assert cause.slug == "scaled"


@pytest.mark.parametrize(
    ("factor", "shown"),
    [
        (2.0, "2"),
        (0.5, "1/2"),
        (-3.0, "-3"),
        (2 / 3, "2/3"),
        (20.0, "x.numel()"),
        (1 / 20, "1/x.numel()"),
        (7.0 * 3, "grad_output.numel()"),
        (1.23456789, "1.23457"),
    ],
)
def test_factors_are_recognised(factor, shown):
    (item,) = evidence_of([draw(4, 5)], [draw(4, 5, seed=1)], cotangents=[draw(21)])
    assert recognised(factor, [item]) == shown


def test_sizes_of_other_inputs_are_named_where_no_own_size_is_it():
    pred, target = draw(4, 5), draw(4, 5, seed=1)
    weight = torch.tensor(0.5, dtype=torch.float64)
    item = Evidence(
        2, ["pred", "target", "weight"], [pred, target, weight], torch.arange(1),
        weight.reshape(1), torch.full((1,), 1e-10, dtype=torch.float64), [weight],
        values=[pred, target, weight],
    )  # fmt: skip
    assert recognised(20.0, [item]) == "pred.numel()"
    assert meaning(1 / 20, [item]) == "20 is the number of elements of `pred` and of `target`"
    assert meaning(5.0, [item]) == "5 is the size of axis 1 of `pred`"
    assert meaning(1.23456789, [item]) == ""
    assert recognised(-2.0, [item]) == "-2"


@pytest.mark.parametrize(
    ("factor", "shown"),
    [(2.0, "2"), (0.25, "1/4"), (12.0, "x.numel()"), (1 / 12, "1/x.numel()")],
)
def test_the_missing_factor_stands_in_text_and_help(factor, shown):
    true = pair_of(4, 3)
    cause = diagnose(evidence_of(true, [g / factor for g in true]))
    assert f"times {shown} agrees" in cause.text
    assert cause.help.endswith(f"by {shown}")


def test_partial_measurements_suffice():
    true = pair_of(30, 20)
    some = [0, 3, 77, 240, 599]
    cause = diagnose(evidence_of(true, [-g for g in true], elements=some))
    assert cause.slug == "sign"


def test_elements_that_could_not_be_measured_are_ignored():
    evidence = evidence_of(pair_of(4, 3), [-g for g in pair_of(4, 3)])
    for item in evidence:
        item.measured[5] = float("nan")
    assert diagnose(evidence).slug == "sign"
    for item in evidence:
        item.measured[:] = float("nan")
    assert diagnose(evidence) is None


def test_gradients_in_float32_are_compared_with_their_bars():
    true = [g.float() for g in pair_of(4, 3)]
    evidence = evidence_of([g.double() for g in true], [(-g) for g in true], noise=1e-4)
    assert diagnose(evidence).slug == "sign"


def test_no_evidence_no_cause():
    assert diagnose([]) is None
    empty = torch.zeros(0, dtype=torch.float64)
    assert diagnose(evidence_of([empty], [empty])) is None


def test_slices_are_named_in_words():
    true = pair_of(4, 5)
    for place, words in ((0, "first"), (4, "last"), (2, "number 2")):
        faulty = [zero_at(g, slice(None), place) for g in true]
        cause = diagnose(evidence_of(true, faulty))
        assert cause.slug == "one-slice"
        assert f"index {place} ({words}) along axis 1 of `x`" in cause.text


def test_one_element_is_named_by_index():
    true = pair_of(4, 5)
    cause = diagnose(evidence_of(true, [zero_at(g, 3, 0) for g in true]))
    assert "element [3, 0] of `x`" in cause.text


def test_wrong_elements_allow_for_the_bars():
    true = draw(6)
    returned = true.clone()
    returned[2] += 1.0
    returned[4] += 1e-8
    (item,) = evidence_of([true], [returned])
    assert wrong_elements(item).tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize(
    ("flat", "shape", "index"),
    [(0, (3, 4), (0, 0)), (7, (3, 4), (1, 3)), (23, (2, 3, 4), (1, 2, 3)), (0, (), ())],
)
def test_unravel(flat, shape, index):
    assert unravel(flat, shape) == index


# -- from a function to its cause, elements measured by differences --------------------------------


def measured_evidence(function, values, vjp, index):
    """Evidence about input ``index`` of ``function`` with the claimed ``vjp``."""

    def evaluate(inputs):
        return [function(*inputs)]

    whole = Map(list(values), evaluate(values), evaluate, lambda inputs, vs: vjp(*vs, *inputs))
    found = []
    for k in range(2):
        vs = [cotangent(whole.outputs[0], torch.Generator().manual_seed(k))]
        claimed = list(whole.pull(vs))
        chosen = range(values[index].numel())
        (elements,) = measure_elements(Residuals(whole, index, [vs], [claimed[index]]), chosen)
        found.append(
            Evidence(
                index,
                NAMES[: len(values)],
                claimed,
                elements.indices,
                elements.measured,
                elements.bars,
                vs,
            )
        )
    return found


# Operator, shapes, faulty VJP, input at fault, cause, words in its text.
OPERATORS = [
    (torch.square, [(4, 3)], lambda v, x: [v * x], 0, "scaled", "times 2 agrees"),
    (torch.square, [(4, 3)], lambda v, x: [-2 * v * x], 0, "sign", "opposite sign"),
    (torch.exp, [(4, 3)], lambda v, x: [v], 0, "straight-through", "not 1"),
    (torch.exp, [(4, 3)], lambda v, x: [x.exp()], 0, "ignores-grad-output", "whatever"),
    (torch.exp, [(4, 3)], lambda v, x: [0 * x], 0, "zero", "depends on it"),
    (torch.mean, [(4, 3)], lambda v, x: [v.expand(4, 3)], 0, "scaled", "times 1/x.numel() agrees"),
    (torch.mul, [(4, 3)] * 2, lambda v, x, y: [v * x, v * y], 1, "swapped", "gradient of `weight`"),
    (
        torch.matmul,
        [(3, 4), (4, 4)],
        lambda v, x, w: [v @ w.mT, v.mT @ x],
        1,
        "transposed",
        ".mT",
    ),
    (
        torch.nn.functional.linear,
        [(3, 4), (5, 4)],
        lambda v, x, w: [v @ w, (x.mT @ v).reshape(5, 4)],
        1,
        "transposed",
        ".mT",
    ),
    (
        lambda x: x.cumsum(-1),
        [(3, 5)],
        lambda v, x: [zero_at(v.flip(-1).cumsum(-1).flip(-1), slice(None), -1)],
        0,
        "one-slice",
        "index 4 (last) along axis 1",
    ),
    (torch.sign, [(4, 3)], lambda v, x: [v], 0, "straight-through", "piecewise constant"),
]


@pytest.mark.parametrize(("function", "shapes", "vjp", "index", "slug", "words"), OPERATORS)
@pytest.mark.parametrize("seed", range(3))
def test_causes_of_faulty_operators(function, shapes, vjp, index, slug, words, seed):
    values = [draw(*shape, seed=10 * seed + k) for k, shape in enumerate(shapes)]
    cause = diagnose(measured_evidence(function, values, vjp, index))
    assert cause is not None
    assert cause.slug == slug
    assert words in cause.text


def test_a_missing_conjugate_is_measured():
    # In 2vz for 2v·conj(z) only the factor beside grad_output lacks it; where the output is real
    # it is the whole.
    z = draw(6, dtype=torch.complex128)
    for function, vjp in (
        (torch.square, lambda v, z: [2 * v * z]),
        (torch.exp, lambda v, z: [v * z.exp()]),
        (lambda z: (z * z.conj()).real, lambda v, z: [2 * v * z.conj()]),
    ):
        cause = diagnose(measured_evidence(function, [z], vjp, 0))
        assert cause.slug == "conjugate"
        assert ".conj()" in cause.help
    other = diagnose(measured_evidence(torch.square, [z], lambda v, z: [v * z + 1], 0))
    assert other is None


def test_bars_too_wide_to_tell_right_from_wrong_name_nothing():
    true = pair_of(4, 3)
    found = evidence_of(true, [-g for g in true])
    for item in found:
        item.bars.fill_(1e3)
    assert diagnose(found) is None


def test_a_backward_that_is_not_linear_is_called_nothing_else():
    true = pair_of(4, 3)
    found = evidence_of(true, [-g for g in true])
    assert diagnose(found).slug == "sign"
    assert diagnose(found, response=NOT_LINEAR).slug == "not-linear"


def test_a_pattern_must_hold_under_every_cotangent():
    true = pair_of(4, 3)
    one = evidence_of(true, [zero_at(g, 1, 2) for g in true])
    assert diagnose(one).slug == "one-element"
    assert "[1, 2]" in diagnose(one).text
    other = evidence_of(true, [zero_at(true[0], 1, 2), zero_at(true[1], 3, 0)])
    assert diagnose(other) is None


def test_gradients_whose_squares_overflow_have_no_factor():
    """As of memory that was never written; a moderate one has a factor."""
    for size, factors in ((1e200, 0), (1e100, 1)):
        found = []
        for item in evidence_of(pair_of(4, 3), [size * g for g in pair_of(4, 3)]):
            move = draw(4, 3, seed=7)
            slope = float((item.own / size * move).sum())
            blind = torch.full_like(item.measured, float("nan"))
            found.append(replace(item, measured=blind, move=move, slope=slope, slope_bar=1e-9))
        assert len([one for one in [scaled(found, "x")] if one is not None]) == factors
