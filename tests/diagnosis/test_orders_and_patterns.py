"""Causes that are orders of axes and slices, patterns of elements, or readings of a factor."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.diagnosis._factors import meaning, recognised
from gradlint.diagnosis._patterns import worded
from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import Evidence
from gradlint.diagnosis.precision import low_precision
from gradlint.diagnosis.response import NOT_LINEAR, Response
from gradlint.numerics.pattern import BORDER, DIAGONAL, UPPER, Pattern


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(700 + seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def known(true, returned, *, others=(), move=False):
    """Evidence where every element was measured; ``move``: where only a slope was."""
    found = []
    for k, (right, claim) in enumerate(zip(true, returned, strict=True)):
        claimed = [claim, *(others[k] if others else ())]
        count = 0 if move else right.numel()
        u = draw(*right.shape, seed=40 + k) if move else None
        found.append(
            Evidence(
                0,
                ["x", "weight"][: len(claimed)],
                claimed,
                torch.arange(count),
                right.reshape(-1)[:count].clone(),
                torch.full((count,), 1e-10, dtype=torch.float64),
                [draw(7, seed=20 + k)],
                move=u,
                slope=float((right * u).sum()) if move else 0.0,
                slope_bar=1e-10 if move else math.inf,
            )
        )
    return found


def zero(g, *index):
    g = g.clone()
    g[index] = 0.0
    return g


EVERY = slice(None)

# What is done to the right gradient, its shape, the cause, words in its text.
PLANTED = [
    (lambda g: g.flip(0), (4, 3), "flipped-axis", "along axis 0"),
    (lambda g: g.flip(0, 1), (4, 3), "flipped-axis", "axes [0, 1]"),
    (lambda g: g.roll(1, 1), (4, 5), "permuted-axis", "rolled by -1 along axis 1"),
    (lambda g: g.roll(2, 0), (7,), "permuted-axis", "rolled by -2 along axis 0"),
    (
        lambda g: g[[2, 0, 3, 1]],
        (4, 3),
        "permuted-axis",
        "slices of axis 0 in the order (1, 3, 0, 2)",
    ),
    (lambda g: g.permute(2, 0, 1), (3, 3, 3), "permuted-axis", "order (1, 2, 0)"),
    (lambda g: g.transpose(0, 2), (3, 2, 3), "transposed", ".transpose(0, 2)"),
    (lambda g: g.mT.reshape(g.shape), (2, 4, 3), "transposed", ".mT"),
    (lambda g: zero(g, slice(1, None, 2)), (8, 3), "periodic", "every odd row of `x` is wrong"),
    (
        lambda g: zero(g, EVERY, slice(0, None, 3)),
        (2, 9),
        "periodic",
        "every 3rd column, from 0 on of `x` is wrong",
    ),
    (lambda g: zero(g, [0, -1]), (6, 3), "boundary", "the first and the last row of `x` are wrong"),
    (
        lambda g: zero(g, [0, -1]),
        (3, 4),
        "boundary",
        "only rows 0 and 2 of `x` are wrong: the first and the last of 3, which may be chance",
    ),
    (
        lambda g: zero(g, EVERY, [0, -1]),
        (2, 5, 2),
        "boundary",
        "only the first and the last index along axis 1 of `x` are wrong",
    ),
    (lambda g: zero(g, slice(4, None)), (9, 3), "block", "rows >= 4 of `x` are wrong"),
    (lambda g: zero(g, slice(0, 3)), (9, 3), "block", "rows < 3 of `x` are wrong"),
    (
        lambda g: zero(g, EVERY, slice(2, 5)),
        (2, 9, 2),
        "block",
        "indices 2 to 4 along axis 1 of `x` are wrong",
    ),
    (lambda g: g - torch.diag(g.diag()), (5, 5), "diagonal", "only the diagonal of `x`"),
    (torch.triu, (6, 6), "block", "below the diagonal"),
    (lambda g: g + 0.3, (4, 3), "additive-constant", "the same amount whatever grad_output is"),
]


@pytest.mark.parametrize(("fault", "shape", "slug", "words"), PLANTED)
def test_planted_faults_are_named(fault, shape, slug, words):
    true = [draw(*shape, seed=k) for k in range(2)]
    cause = diagnose(known(true, [fault(g) for g in true]))
    assert cause is not None
    assert cause.slug == slug
    assert words in cause.text
    assert cause.text.startswith(slug)
    assert cause.help


@pytest.mark.parametrize(("fault", "shape", "slug", "words"), PLANTED[:8])
def test_slopes_alone_tell_orders(fault, shape, slug, words):
    true = [draw(*shape, seed=k) for k in range(4)]
    cause = diagnose(known(true, [fault(g) for g in true], move=True))
    if "slices of axis" in words:
        assert cause is None  # elements are needed to find an arbitrary order
    else:
        assert (cause.slug, words in cause.text) == (slug, True)
        assert "in 4 of 4 measurements" in cause.text


def test_one_slope_is_not_enough():
    true = [draw(4, 3)]
    assert diagnose(known(true, [-true[0]], move=True)) is None


def test_equally_good_causes_are_all_named():
    left, right = [draw(3, 3, seed=k) for k in range(2)], [draw(3, 3, seed=k + 5) for k in range(2)]
    cause = diagnose(known(left, [g.mT for g in left], others=[[g] for g in left]))
    assert (cause.slug, cause.others) == ("transposed", ("swapped",))
    assert "; or, as well, swapped: " in cause.text
    alone = diagnose(known(left, [g.mT for g in left], others=[[g] for g in right]))
    assert (alone.slug, alone.others) == ("transposed", ())


def test_the_gradient_of_another_input_that_is_right_there():
    true, other = [draw(3, 4, seed=k) for k in range(2)], [draw(3, 4, seed=k + 5) for k in range(2)]
    evidence = known(true, other, others=[[g] for g in other])
    assert diagnose(evidence) is None
    cause = diagnose(evidence, right=[1])
    assert cause.slug == "swapped"
    assert "`weight` is also returned for `x`" in cause.text


def test_a_constant_term_and_an_earlier_call():
    true, term = [draw(4, 3, seed=k) for k in range(2)], draw(4, 3, seed=9)
    evidence = known(true, [g + term for g in true])
    cause = diagnose(evidence, response=Response(NOT_LINEAR, offset=term))
    assert cause.slug == "additive-constant"
    assert diagnose(evidence, response=Response(NOT_LINEAR, offset=2 * term)).slug == "not-linear"
    assert diagnose(evidence, response=Response(NOT_LINEAR, stale="inputs")).slug == "stale"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cast_is_low_precision_and_one_per_cent_is_not(dtype):
    true = [draw(6, 5, seed=k) for k in range(2)]
    cast = known(true, [g.to(dtype).double() for g in true])
    cause = low_precision(cast, "x")
    assert cause.slug == "low-precision"
    assert str(dtype).removeprefix("torch.") in cause.text
    assert low_precision(known(true, [1.003 * g for g in true]), "x") is None
    assert low_precision(known(true, [g + 0.1 for g in true]), "x") is None


@pytest.mark.parametrize(
    ("factor", "shown", "told"),
    [
        (math.pi, "pi", ""),
        (1 / math.sqrt(20), "1/sqrt(x.numel())", "20 is the number of elements of `x`"),
        (19.0, "19", ""),
        (1 / 19, "1/(x.numel() - 1)", "20 is the number of elements of `x`"),
        (180 / math.pi, "180/pi", ""),
        (-20 / 19, "-x.numel()/(x.numel() - 1)", "20 is the number of elements of `x`"),
        (math.log(2), "ln 2", ""),
        (20.0, "x.numel()", "20 is the number of elements of `x`"),
        (0.7431, "0.7431", ""),
    ],
)
def test_factors_and_what_they_are_made_of(factor, shown, told):
    (item,) = known([draw(4, 5)], [draw(4, 5, seed=1)])
    assert recognised(factor, [item]) == shown
    assert meaning(factor, [item]) == told


@pytest.mark.parametrize(
    ("pattern", "slug", "words"),
    [
        (Pattern((40, 50), (range(32, 40), None)), "block", "rows >= 32"),
        (Pattern((40, 50), (None, range(49, 50))), "one-slice", "the last column"),
        (
            Pattern((40, 50), (range(3, 4), range(1, 50, 2))),
            "periodic",
            "row 3 in every odd column",
        ),
        (Pattern((9,), (range(4, 5),)), "one-element", "element [4]"),
        (Pattern((8, 8), (None, None), DIAGONAL, (0, 1), 2), "diagonal", "the diagonal +2"),
        (Pattern((8, 8), (None, None), UPPER, (0, 1)), "block", "above the diagonal"),
        (Pattern((9, 9), (None, None), BORDER, (0, 1)), "boundary", "the border"),
    ],
)
def test_patterns_in_words(pattern, slug, words):
    cause = worded(pattern, "x")
    assert cause.slug == slug
    assert words in cause.text


def test_nearly_everything_is_no_pattern():
    assert worded(Pattern((40, 50), (range(1, 40), None)), "x") is None
    assert worded(Pattern((40, 50), (None, None)), "x") is None
