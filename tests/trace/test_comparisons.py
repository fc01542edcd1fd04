"""Thresholds and indices are noted while forward runs."""

from __future__ import annotations

import torch

from gradlint.trace.comparisons import Comparisons

X = torch.tensor([-1.0, 0.5, 2.0])
ROWS = torch.tensor([0, 2])


def watched(function) -> Comparisons:
    found = Comparisons()
    with found:
        function()
    return found


def test_thresholds_of_comparisons_and_clamps():
    assert watched(lambda: X > 1.5).thresholds == [1.5]
    assert watched(lambda: X.clamp(0, 6)).thresholds == [0.0, 6.0]
    assert watched(lambda: torch.nn.functional.hardtanh(X, -2.0, 3.0)).thresholds == [-2.0, 3.0]
    assert watched(lambda: X.exp() + 3.0).thresholds == []
    assert watched(lambda: X.clamp(max=float("inf"))).thresholds == []


def test_whether_all_elements_are_on_one_side():
    assert watched(lambda: X > 20.0).one_sided
    assert not watched(lambda: X > 1.5).one_sided
    assert not watched(lambda: ROWS > 20).one_sided  # integers are no values that move


def test_whether_rows_are_overwritten():
    def put(accumulate: bool):
        return lambda: X.clone().index_put_((ROWS,), X[:2], accumulate=accumulate)

    assert watched(put(False)).overwrites
    assert not watched(put(True)).overwrites
    assert watched(lambda: X.scatter(0, ROWS, X[:2])).overwrites
    assert not watched(lambda: X.scatter_add(0, ROWS, X[:2])).overwrites
    assert not watched(lambda: X.index_add(0, ROWS, X[:2])).overwrites


def test_whether_indices_may_count_from_the_end():
    assert watched(lambda: X[ROWS]).from_the_end
    assert not watched(lambda: X.index_select(0, ROWS)).from_the_end
