"""Arithmetic of dims, and which combinations become samples."""

from __future__ import annotations

import pytest

from gradlint.expressions.limits import ExpressionError
from gradlint.spec._dims import MAX_SAMPLES, Axis, combinations, size_of

DIMS = {"N": 4, "K": 3, "e": 2}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (5, 5),
        ("N", 4),
        ("2*N", 8),
        ("N + 1", 5),
        ("2 * N - K", 5),
        ("N // K", 1),
        ("N % K", 1),
        ("N ** 2", 16),
        ("-(N - 5)", 1),
        ("max(N, K, 7)", 7),
        ("min(N, K)", 3),
        ("abs(K - N)", 1),
        ("e", 2),
        ("N - 5", -1),
    ],
)
def test_size(size: int | str, expected: int) -> None:
    assert size_of(size, DIMS) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("M", 1),
        ("N + M", 5),
        ("N / 2", 1),
        ("N // 0", 1),
        ("N % 0", 1),
        ("1.5", 1),
        ("'a'", 1),
        ("True", 1),
        ("randn(3)", 1),
        ("N if N else K", 1),
        ("(N, K)", 1),
        ("N ** 100", 1),
        ("K ** -1", 1),
        ("max()", 1),
        ("2**40 * 2**40", 1),
    ],
)
def test_no_size(text: str, column: int) -> None:
    with pytest.raises(ExpressionError) as raised:
        size_of(text, DIMS)
    assert raised.value.column == column


def test_one_at_a_time_around_the_first_then_all_last() -> None:
    axes = [Axis("N", (1, 4, 33)), Axis("C", (8,)), Axis("K", (5, 6))]
    assert combinations(axes) == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 0, 1), (2, 0, 1)]


@pytest.mark.parametrize("axes", [[], [Axis("N", (3,))]])
def test_nothing_to_vary(axes: list[Axis]) -> None:
    assert combinations(axes) == [(0,) * len(axes)]


def test_one_axis_has_no_repetition() -> None:
    assert combinations([Axis("N", (1, 2, 3))]) == [(0,), (1,), (2,)]


@pytest.mark.parametrize("counts", [(20,), (9, 9, 9), (2,) * 30, (50, 1, 1, 50)])
def test_many_are_cut_to_a_modest_set(counts: tuple[int, ...]) -> None:
    axes = [Axis(f"d{i}", tuple(range(count))) for i, count in enumerate(counts)]
    made = combinations(axes)
    assert len(made) == MAX_SAMPLES
    assert len(set(made)) == MAX_SAMPLES
    assert made[0] == (0,) * len(counts)
    assert made[-1] == tuple(count - 1 for count in counts)
    for position, count in enumerate(counts[: MAX_SAMPLES - 2]):
        if count > 1:
            assert any(combination[position] == count - 1 for combination in made[:-1]) or (
                len(counts) == 1
            )
