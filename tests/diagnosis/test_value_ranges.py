"""Causes that are ranges of values: planted ones are named, chance and other causes are not."""

from __future__ import annotations

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import Evidence
from gradlint.model.events import Found
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(910 + seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def evidence(values, wrong, *, names=("x",), chosen=None):
    """Gradients that are random but for the elements ``wrong``, which are 1.5 times too large."""
    found = []
    shape = values[0].shape
    elements = torch.arange(values[0].numel()) if chosen is None else torch.tensor(chosen)
    for k in range(2):
        right = draw(*shape, seed=20 + k)
        returned = torch.where(wrong, 1.5 * right, right)
        found.append(
            Evidence(
                0,
                list(names),
                [returned, *(torch.zeros_like(value) for value in values[1:])],
                elements,
                right.reshape(-1)[elements],
                torch.full(elements.shape, 1e-10, dtype=torch.float64),
                [draw(7, seed=40 + k)],
                values=list(values),
            )
        )
    return found


X, W = draw(4, 5), draw(4, 5, seed=1)

# Where it is wrong, and what is said.
RANGES = [
    (X < 0, "where `x` is negative"),
    (X > 0, "where `x` is positive"),
    (X < -0.7, "where `x` is below a bound between"),
    (X > 0.4, "where `x` is above a bound between"),
    (X.abs() > 0.9, "where |x| is above a bound between"),
    (X.abs() < 0.5, "where |x| is below a bound between"),
    (W > 0, "where `weight` is positive"),
]


@pytest.mark.parametrize(("wrong", "words"), RANGES, ids=[words for _, words in RANGES])
def test_ranges_are_named(wrong, words):
    cause = diagnose(evidence([X, W], wrong, names=["x", "weight"]))
    assert cause is not None
    assert (cause.slug, words in cause.text, words in cause.help) == ("value-range", True, True)
    assert f"for the {int(wrong.sum())} of 20 elements of `x`" in cause.text


def test_the_bound_lies_between_the_values():
    cause = diagnose(evidence([X], X > 0.4))
    low, high = X[X <= 0.4].max(), X[X > 0.4].min()
    assert f"a bound between {low:.3g} and {high:.3g}" in cause.text


def test_a_range_needs_no_more_than_the_measured_elements():
    chosen = list(range(0, 20, 2))
    cause = diagnose(evidence([X], X < 0, chosen=chosen))
    measured = X.reshape(-1)[chosen]
    assert f"{int((measured < 0).sum())} of 10 elements" in cause.text


@pytest.mark.parametrize("wrong", [draw(4, 5, seed=2) > 0, X.max() == X], ids=["other", "largest"])
def test_near_misses_are_not_ranges(wrong):
    """Elements that a range would leave scattered; one element, which is always at an end of some
    range."""
    cause = diagnose(evidence([X], wrong))
    assert cause is None or "value-range" not in (cause.slug, *cause.others)


def test_elements_that_are_zero_in_any_case_break_no_range():
    found = evidence([X], X < 0)
    for item in found:
        item.claimed[0][X < -1] = 0.0
        item.measured[(X < -1).reshape(-1)] = 0.0
    cause = diagnose(found)
    assert (cause.slug, "where `x` is negative" in cause.text) == ("value-range", True)


class LeakyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, 2.0 * ctx.slope * grad_output), None


def test_a_branch_that_backward_has_otherwise():
    events = []
    examine(
        from_object(LeakyRelu),
        [Sample("given", "given", (X.clone().requires_grad_(), 0.1))],
        Settings(select=("GL401",), seed=3),
        events.append,
    )
    (finding,) = [event.finding for event in events if isinstance(event, Found)]
    assert (finding.cause, "where `x` is negative" in finding.cause_text) == ("scaled", True)
    assert "through `slope * x` (line " in finding.cause_text
    assert " counts twice in backward" in finding.cause_text


def test_a_range_among_thousands_of_elements():
    values = draw(60, 50, seed=3)  # half of them wrong: more choices than a float can count
    cause = diagnose(evidence([values], values < 0))
    assert cause is not None
    assert f"for the {int((values < 0).sum())} of 3000 elements of `x`" in cause.text
