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
    keep = torch.arange(len(X)) > 0
    assert not watched(lambda: X.clone().index_put_((keep,), X[keep])).overwrites
    assert watched(lambda: X.scatter(0, ROWS, X[:2])).overwrites
    assert not watched(lambda: X.scatter_add(0, ROWS, X[:2])).overwrites
    assert not watched(lambda: X.index_add(0, ROWS, X[:2])).overwrites


def test_whether_indices_may_count_from_the_end():
    assert watched(lambda: X[ROWS]).from_the_end
    assert not watched(lambda: X.index_select(0, ROWS)).from_the_end


def test_what_is_compared_is_kept():
    seen = watched(lambda: (X.square().clamp(min=0.1), X.relu(), X > 0.1, X == 0.1)).compared
    places = [("clamp", 0.1, 0), ("relu", 0.0, 0), ("gt", 0.1, 0)]
    assert list(seen) == places
    squares, plain, compared = (seen[place] for place in places)
    assert (squares.side, plain.side) == (1, 0)
    assert watched(lambda: X > 2.0).compared["gt", 2.0, 0].side == -1
    assert squares.middle == 1.0
    assert (squares.bounds, plain.bounds, compared.bounds) == (True, True, False)
    assert plain.tensor.tolist() == X.tolist()


def test_guards_bound_nothing():
    def guards(function) -> dict[float, float]:
        return watched(function).guards()

    y = X.square()
    assert guards(lambda: (y.clamp(min=1e-12), y.clamp_min(0.1))) == {1e-12: 0.25, 0.1: 0.25}
    assert guards(lambda: (y.clamp(min=1e-12), (y / 2).clamp(min=1e-12))) == {1e-12: 0.125}
    assert guards(lambda: y.clamp(min=0.5)) == {}  # it does bound something
    assert guards(lambda: (y > 1e-12, y.clamp(min=0.0), y.clamp(max=9.0))) == {}


def test_the_same_comparison_twice_is_two():
    assert list(watched(lambda: (X > 1.0, X.square() > 1.0)).compared) == [
        ("gt", 1.0, 0),
        ("gt", 1.0, 1),
    ]


def test_which_bounds_are_for_negative_numbers():
    def sign(function) -> list[bool]:
        return [item.takes_negative for item in watched(function).compared.values()]

    assert sign(lambda: X.relu()) == [True]
    assert sign(lambda: X.clamp(min=-7.0)) == [True]
    assert sign(lambda: X.clamp(min=0.0)) == [False]  # a guard against rounding
    assert sign(lambda: X > -7.0) == [False]
