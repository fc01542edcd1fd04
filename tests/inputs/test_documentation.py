"""Numbers of axes that a docstring or a comment gives."""

from __future__ import annotations

import pytest

from gradlint.inputs.documentation import ranks_in


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("Distances between the rows of x: (N, D) -> (N, N).", {2}),
        ("Smoothing of (B, T, C), with weights (C, 3).", {2, 3}),
        ("# q, k, v: [batch, heads, T, D]", {4}),
        ("Pools (N, C, L_in) to (N, C, L_in // 2).", {3}),
        ("returns (N, C, 2*L)", {3}),
        ("# x: (N, C, *), weight: (C,)", set()),
        ("softmax of (..., D)", set()),
        ("calls f(X, Y) and g(a, dim)", set()),
        ("a range [0, 1], a pair (1, 2)", set()),
        ("no shapes at all", set()),
    ],
)
def test_ranks_in(text: str, ranks: set[int]) -> None:
    assert ranks_in(text) == ranks
