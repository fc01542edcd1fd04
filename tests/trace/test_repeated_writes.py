"""Cells that forward writes to more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.trace.repeated_writes import RepeatedWrites

ONCE, TWICE = torch.tensor([0, 2, 1]), torch.tensor([0, 2, 2])
VALUES = torch.tensor([1.0, 2.0, 3.0])


def assign(index: Tensor) -> Tensor:
    made = torch.zeros(4)
    made[index] = VALUES
    return made


def assign_across(index: Tensor) -> Tensor:
    made = torch.zeros(4, 2, 4)
    made[index, :, index] = VALUES[:, None]
    return made


@pytest.mark.parametrize(
    ("write", "index", "found"),
    [
        (assign, ONCE, False),
        (assign, TWICE, True),
        (assign_across, ONCE, False),
        (assign_across, TWICE, True),
        (lambda i: torch.zeros(4).index_copy(0, i, VALUES), ONCE, False),
        (lambda i: torch.zeros(4).index_copy(0, i, VALUES), TWICE, True),
        (lambda i: torch.zeros(4).scatter(0, i, VALUES), ONCE, False),
        (lambda i: torch.zeros(4).scatter(0, i, VALUES), TWICE, True),
        # The same number twice, or a sum, is the same in any order.
        (lambda i: torch.zeros(4).scatter(0, i, 1.0), TWICE, False),
        (lambda i: torch.zeros(4).scatter_add(0, i, VALUES), TWICE, False),
        (lambda i: torch.zeros(4).index_put((i,), VALUES, accumulate=True), TWICE, False),
        (lambda i: torch.zeros(3, 4).index_put((i, TWICE), VALUES), TWICE, True),
        (lambda i: torch.zeros(3, 4).index_put((ONCE, i), VALUES), TWICE, False),
    ],
)
def test_what_is_written_twice(
    write: Callable[[Tensor], Tensor], index: Tensor, found: bool
) -> None:
    with RepeatedWrites() as watched:
        write(index)
    assert watched.found is found


class Canvas(Function):
    """Rows of features, (P, C), put into cells, (P, 2), of a canvas (5, C, 6), no two alike."""

    share = 1.0

    @staticmethod
    def forward(ctx: Any, features: Tensor, cells: Tensor) -> Tensor:
        canvas = features.new_zeros(5, features.shape[1], 6)
        canvas[cells[:, 0], :, cells[:, 1]] = features
        ctx.save_for_backward(cells)
        return canvas

    @classmethod
    def backward(cls, ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (cells,) = ctx.saved_tensors
        found = grad[cells[:, 0], :, cells[:, 1]]
        found[:, 5:] *= cls.share
        return found, None


class CutCanvas(Canvas):
    """Only the first five features have their gradient."""

    share = 0.5


@pytest.mark.parametrize(("op", "red"), [(Canvas, []), (CutCanvas, ["GL706"])])
def test_cells_that_are_alike_only_at_other_sizes(op: type, red: list[str]) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    cells = torch.tensor([[0, 1], [1, 3], [3, 0], [4, 5]])
    report = gradlint.check(op, (features, cells), select=["GL401", "GL706"], seed=0)
    assert [item.code for item in report.findings if item.severity != "info"] == red
