"""Wrong elements of large gradients: where they are, and what they have in common."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.elements import Residuals
from gradlint.numerics.locate import SCATTERED, locate
from gradlint.numerics.pattern import BORDER, DIAGONAL, LOWER, UPPER, Pattern, pattern_of, pick_of

EVERY = slice(None)


def zero(*index):
    def fault(g):
        g = g.clone(memory_format=torch.contiguous_format)
        g[index] = 0.0
        return g

    return fault


def zero_flat(*elements):
    def fault(g):
        g = g.clone(memory_format=torch.contiguous_format)
        g.view(-1)[list(elements)] = 0.0
        return g

    return fault


def zero_diagonal(g):
    g = g.clone()
    torch.diagonal(g).zero_()
    return g


def zero_border(g):
    inside = torch.zeros_like(g)
    inside[1:-1, 1:-1] = g[1:-1, 1:-1]
    return inside


@pytest.fixture
def residuals(as_map, randn):
    """Residuals of an operator with a planted fault, under two cotangents."""

    def make(function, shapes, fault, *, at=0, seed=0, dtype=torch.float64):
        values = [randn(*shape, seed=seed + k, dtype=dtype) for k, shape in enumerate(shapes)]
        planted = as_map(function, values, faults={at: fault} if fault else None)
        vs = [
            [randn(*y.shape, seed=seed + 50 + k, dtype=y.dtype) for y in planted.outputs]
            for k in range(2)
        ]
        return Residuals(planted, at, vs, [planted.pull(v)[at] for v in vs])

    return make


OPERATORS = {
    "elementwise": (torch.sin, [(40, 50)], 0),
    "rows": (lambda x: torch.softmax(x, -1), [(40, 50)], 0),
    "dense": (torch.matmul, [(30, 40), (40, 50)], 1),
}
PATTERNS = {
    "last column": (zero(EVERY, -1), (None, range(49, 50))),
    "one row": (zero(7), (range(7, 8), None)),
    "odd rows": (zero(slice(1, None, 2)), (range(1, 40, 2), None)),
    "every fourth column": (zero(EVERY, slice(0, None, 4)), (None, range(0, 50, 4))),
    "rows from 32 on": (zero(slice(32, None)), (range(32, 40), None)),
    "a block": (zero(slice(20, 30), slice(4, 25)), (range(20, 30), range(4, 25))),
    "both ends": (zero(EVERY, [0, -1]), (None, (0, 49))),
    "one element": (zero(12, 34), (range(12, 13), range(34, 35))),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_regular_patterns_are_found(name, operator, residuals):
    function, shapes, at = OPERATORS[operator]
    fault, picks = PATTERNS[name]
    for seed in range(3):
        found = locate(residuals(function, shapes, fault, at=at, seed=seed), seed=seed)
        assert found.pattern == Pattern((40, 50), picks)
        mask = found.pattern.mask().flatten()
        assert found.elements
        assert all(mask[element] for element in found.elements)
        assert not any(mask[element] for element in found.right)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (zero_diagonal, DIAGONAL),
        (torch.tril, UPPER),
        (torch.triu, LOWER),
        (zero_border, BORDER),
    ],
)
def test_diagonals_triangles_and_borders_are_found(fault, kind, residuals):
    planted = residuals(torch.matmul, [(30, 40), (40, 40)], fault, at=1)
    found = locate(planted, seed=1)
    assert found.pattern == Pattern((40, 40), (None, None), kind, (0, 1))


@pytest.mark.parametrize("element", [0, 123456, 999999])
def test_one_of_a_million_takes_few_calls(element, residuals):
    planted = residuals(torch.sin, [(10**6,)], zero_flat(element))
    found = locate(planted, seed=3)
    assert found.elements == [element]
    assert found.complete
    assert planted.calls <= 40


@pytest.mark.parametrize("count", [2, 3, 5])
def test_scattered_elements_are_all_found(count, residuals):
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        wrong = sorted(torch.randperm(2000, generator=generator)[:count].tolist())
        found = locate(residuals(torch.sin, [(40, 50)], zero_flat(*wrong)), seed=seed)
        if found.pattern is None:
            assert (found.elements, found.complete) == (wrong, True)
        else:  # two of them span a block that they fill
            assert torch.nonzero(found.pattern.mask().flatten()).flatten().tolist() == wrong


def test_where_all_is_wrong_few_are_named_and_no_pattern(residuals):
    planted = residuals(torch.sin, [(40, 50)], torch.neg)
    found = locate(planted, seed=0)
    assert found.pattern is None
    assert len(found.elements) >= SCATTERED
    assert planted.calls <= 60


def test_nothing_is_found_in_a_right_gradient(residuals):
    for seed in range(5):
        found = locate(residuals(torch.sin, [(40, 50)], None, seed=seed), seed=seed)
        assert (found.pattern, found.elements) == (None, [])


def test_the_budget_is_kept_whatever_is_wrong(residuals):
    def half(g):
        generator = torch.Generator().manual_seed(4)
        return g * (torch.rand(g.shape, generator=generator) < 0.5)

    planted = residuals(torch.matmul, [(30, 40), (40, 50)], half, at=1)
    assert locate(planted, seed=0, most_calls=100).pattern is None
    assert planted.calls <= 100


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_other_dtypes(dtype, residuals):
    planted = residuals(torch.sin, [(40, 50)], zero(12, 34), dtype=dtype)
    assert locate(planted, seed=0).elements == [634]


@pytest.mark.parametrize(
    ("chosen", "size", "pick"),
    [
        ([0, 1, 2], 3, None),
        ([2], 3, range(2, 3)),
        ([0, 4], 5, (0, 4)),
        ([2, 3, 4], 9, range(2, 5)),
        ([1, 3, 5], 6, range(1, 6, 2)),
        ([1, 3], 9, ""),
        ([0, 1, 5], 9, ""),
    ],
)
def test_indices_of_an_axis_as_a_pick(chosen, size, pick):
    assert pick_of(chosen, size) == pick


def test_a_pattern_of_known_elements_allows_for_those_right_anyway():
    wrong = torch.zeros(4, 6, dtype=torch.bool)
    neutral = torch.zeros(4, 6, dtype=torch.bool)
    wrong[1] = True
    wrong[1, 3], neutral[1, 3] = False, True
    assert pattern_of(wrong, neutral) == Pattern((4, 6), (range(1, 2), None))
    assert pattern_of(wrong, torch.zeros_like(neutral)) is None
