"""Values that forward tests for occur in what it takes for constants."""

from __future__ import annotations

import torch

from gradlint.inputs.designed_marks import marked_labels
from gradlint.inputs.designed_tested import exact_values
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.comparisons import Comparisons

T = torch.tensor


class Scored(torch.autograd.Function):
    """A score of counts, where there are some.

    Args:
        codes: int64 indices; those equal to `missing` are left out
        missing: a negative number
    """

    @staticmethod
    def forward(ctx, x, counts, codes=None, missing=-1):
        there = ~torch.isnan(counts)
        return torch.where((counts == 0) | ~there, x, x * counts.nan_to_num())

    @staticmethod
    def backward(ctx, g):
        return g, None, None, None


X = T([0.5, -1.2, 0.7, 1.1], requires_grad=True)


def scored() -> Op:
    return from_object(Scored)


def made(*args: torch.Tensor) -> list[tuple[str, list[float]]]:
    watched = Comparisons()
    with watched:
        Scored.forward(None, *args)
    found = exact_values(scored(), Sample("given", "--inputs", args), watched.tested)
    return [(one.sample.label, one.sample.args[1].tolist()) for one in found]


def test_what_is_tested_for_occurs_among_constants():
    (first, nan), (second, zero) = sorted(made(X, T([3.0, 1.0, 2.0, 4.0])), reverse=True)
    assert (first, second) == ("where `counts` is nan in places", "where `counts` is 0 in places")
    assert zero == [0.0, 1.0, 2.0, 0.0]
    assert [value != value for value in nan] == [True, False, False, True]


def test_it_is_not_made_where_it_occurs_or_where_there_is_a_gradient():
    assert [label for label, _ in made(X, T([3.0, 0.0, 2.0, 4.0]))] == [
        "where `counts` is nan in places"
    ]
    labels = [label for label, _ in made(X, T([3.0, 1.0, 2.0, 4.0], requires_grad=True))]
    # backward returns None for it: what it counts is a constant.
    assert len(labels) == 2


def test_the_number_of_what_is_missing_is_moved_below_zero():
    args = (X, T([3.0, 1.0, 2.0, 4.0]), T([2, 0, 1, 2]), -1)
    sample = Sample("s", "inferred", args, domains={"codes": "indices"})
    found = {one.sample.label: one.sample.args for one in marked_labels(scored(), sample)}
    _, _, codes, missing = found["with missing=-2, which occurs in `codes`"]
    assert missing == -2
    assert codes.tolist() == [-2, 0, 1, -2]


def test_one_value_alone_where_forward_refuses_more():
    watched, args = Comparisons(), (X[:3], T([3.0, 1.0, 2.0]))
    with watched:
        Scored.forward(None, *args)
    found = exact_values(scored(), Sample("given", "--inputs", args), watched.tested)
    (nan,) = [one for one in found if "nan" in one.sample.label]
    places = [one.args[1].isnan().tolist() for one in (nan.sample, *nan.alternatives)]
    assert places == [[True, False, True], [False, True, False]]
