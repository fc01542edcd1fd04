"""Sizes become small, and axes that belong together stay together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradlint.inputs.tried import Tried
from gradlint.model.sample import Sample
from gradlint.recorded.shrink import Shrinker


def shrunk(
    run: Callable[..., object], *args: object, calls: list[list[list[int]]] | None = None
) -> list[list[int]]:
    """The shapes to which arguments shrink as long as ``run`` does not raise."""

    def attempt(sample: Sample) -> Tried:
        try:
            run(*sample.args)
        except Exception as error:
            return Tried(0, 0, str(error))
        return Tried(6, 0)

    sample = Sample("call 1", "recorded", args)
    own = [list(value.shape) for value in args if isinstance(value, torch.Tensor)]
    small = Shrinker(sample, calls or [own], attempt, 0).shrunk()
    return [
        list(value.shape) if isinstance(value, torch.Tensor) else [value] for value in small.args
    ]


def test_axes_of_one_size_stay_tied() -> None:
    shapes = shrunk(torch.matmul, torch.randn(32, 64), torch.randn(64, 128))
    (n, k), (k2, m) = shapes
    assert k == k2
    assert len({n, k, m}) == 3
    assert max(n, k, m) <= 5


def test_sizes_that_are_equal_by_chance_are_told_apart() -> None:
    (n, k), (k2, m) = shrunk(torch.matmul, torch.randn(64, 64), torch.randn(64, 64))
    assert k == k2
    assert len({n, k, m}) == 3


def test_another_call_tells_equal_sizes_apart() -> None:
    calls = [[[8, 8], [8, 8]], [[2, 5], [2, 5]]]
    one, two = shrunk(torch.add, torch.randn(8, 8), torch.randn(8, 8), calls=calls)
    assert one == two
    assert one[0] != one[1]


def test_a_size_that_must_stay_stays() -> None:
    def run(x: torch.Tensor) -> None:
        assert x.shape[1] == 80
        assert x.shape[0] % 4 == 0

    assert shrunk(run, torch.randn(64, 80)) == [[4, 80]]


def test_a_size_that_follows_from_another_follows() -> None:
    def run(bins: torch.Tensor, edges: torch.Tensor) -> None:
        assert len(edges) == len(bins) + 1

    assert shrunk(run, torch.randn(50), torch.randn(51)) == [[3], [4]]


def test_integers_change_with_the_sizes_that_they_are() -> None:
    def run(x: torch.Tensor, n: int, k: int) -> None:
        assert len(x) == n

    assert shrunk(run, torch.randn(50), 50, 2) == [[3], [3], [2]]


def test_indices_point_into_what_is_left() -> None:
    shapes = shrunk(
        lambda table, index: table[index], torch.randn(1000, 16), torch.randint(1000, (50,))
    )
    assert shapes == [[5, 4], [3]] or max(max(shape) for shape in shapes) <= 5


@pytest.mark.parametrize("shape", [[0, 50], [1, 50], []])
def test_empty_and_single_axes_are_kept(shape: list[int]) -> None:
    assert shrunk(torch.abs, torch.randn(shape)) == [[*shape[:1], 3][: len(shape)]]
