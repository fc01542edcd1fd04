"""Integers of which no two are alike: what is read, drawn, designed and resized."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.inputs._infer import infer
from gradlint.inputs.designed import replaced
from gradlint.inputs.resized import alike_where_unlike, resized
from gradlint.inputs.unlike import documented_unlike, made_unlike, some_alike
from gradlint.targets.build import from_object


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("coords: (P, 3) int64 rows (batch, y, x), no two alike", "rows"),
        ("coords: (P, 2) int64, distinct pairs", "rows"),
        ("coords: (B, K) int64, items from best to worst, no item twice; K <= M", "elements"),
        ("coords: (K,) unique indices", "elements"),
        ("coords: (N,) int64, subjects by survival, a permutation", "permutation"),
        ("coords: (P, 2) int64, not unique", ""),
        ("coords: (P, 2) int64. x: (N,), all distinct", ""),
        ("coords: (P, 2) int64, may repeat", ""),
        ("coords: (B,); a permutation invariant sum", ""),
    ],
)
def test_documented_unlike(text: str, which: str) -> None:
    assert documented_unlike(text, "coords", ["coords", "x"]) == which


@pytest.mark.parametrize(
    ("rows", "which", "alike"),
    [
        ([[0, 1], [1, 0]], "rows", False),
        ([[0, 1], [0, 1]], "rows", True),
        ([[1, 1], [0, 1]], "rows", False),
        ([[1, 1], [0, 1]], "elements", True),
        ([[0, 1], [0, 1]], "elements", False),
    ],
)
def test_some_alike(rows: list[list[int]], which: str, alike: bool) -> None:
    tensor = torch.tensor(rows)
    assert some_alike(tensor, which) == alike
    made = made_unlike(tensor, which, torch.Generator().manual_seed(0))
    assert not some_alike(made, which)
    assert torch.equal(made, tensor) == (not alike)
    assert bool((made.amax(0) <= tensor.amax(0).clamp(min=1)).all())


def test_too_few_stay_alike() -> None:
    tensor = torch.zeros(3, 2, dtype=torch.int64)
    assert torch.equal(made_unlike(tensor, "rows", torch.Generator()), tensor)


class Canvas(Function):
    """Puts features on a canvas.

    Args:
        feats: (P, C)
        cells: (P, 2) int64 rows (y, x), no two alike
    """

    @staticmethod
    def forward(ctx, feats, cells):
        ctx.save_for_backward(cells)
        canvas = feats.new_zeros(4, 4, feats.shape[1])
        canvas[cells[:, 0], cells[:, 1]] = feats
        return canvas

    @staticmethod
    def backward(ctx, g):
        (cells,) = ctx.saved_tensors
        return g[cells[:, 0], cells[:, 1]], None


@pytest.mark.parametrize("seed", range(5))
def test_rows_stay_unlike(seed: int) -> None:
    sample = infer(from_object(Canvas), seed)[0]
    _, cells = sample.args
    assert len(torch.unique(cells, dim=0)) == len(cells)
    assert sample.unlike == ((1, "rows"),)
    twice = replaced(sample, cells, cells[:1].expand_as(cells), "where rows repeat").sample
    assert alike_where_unlike(twice)
    assert not alike_where_unlike(sample)
    larger = resized(sample, {(0, 0): len(cells) + 4, (1, 0): len(cells) + 4}, seed=seed)
    assert larger is None or not alike_where_unlike(larger)


class Ordered(Function):
    """Sum of what is left at each place of an order.

    risk: (N,) log hazards
    order: (N,) int64, subjects by survival, a permutation
    """

    @staticmethod
    def forward(ctx, risk, order):
        ctx.save_for_backward(order)
        return risk[order].cumsum(0)

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        found = torch.empty_like(g)
        found[order] = g.flip(0).cumsum(0).flip(0)
        return found, None


def test_a_documented_permutation_is_drawn() -> None:
    sample = infer(from_object(Ordered), 0)[0]
    _, order = sample.args
    assert sorted(order.tolist()) == list(range(len(order)))
    for size in (2, 9):
        other = resized(sample, {(0, 0): size, (1, 0): size}, seed=0)
        assert other is not None
        assert sorted(other.args[1].tolist()) == list(range(size))


@pytest.mark.parametrize("seed", range(3))
def test_corners_of_triangles_are_different_points(seed: int) -> None:
    class Normals(torch.autograd.Function):
        @staticmethod
        def forward(ctx, points, faces):
            a, b, c = points[faces].unbind(1)
            ctx.save_for_backward(b - a, c - a)
            return torch.linalg.cross(b - a, c - a)

        @staticmethod
        def backward(ctx, g):
            raise NotImplementedError

    for sample in infer(from_object(Normals), seed):
        faces = sample.args[1]
        assert faces.shape[1:] == (3,)
        assert not some_alike(faces, "corners")
    ordered = torch.tensor([[0, 1, 2], [2, 0, 3]])
    drawn = made_unlike(ordered.repeat(4, 1), "corners", torch.Generator().manual_seed(seed))
    assert len({frozenset(row) for row in drawn.tolist()}) == 4  # all that there are of 4 points
    even = {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    ranks = [tuple(sorted(row).index(corner) for corner in row) for row in drawn.tolist()]
    assert set(ranks) <= even
    assert not some_alike(torch.tensor([0, 0, 1]), "corners")
