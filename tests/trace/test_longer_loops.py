"""Numbers of rounds that are written into forward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from gradlint.targets.build import from_object
from gradlint.trace.longer_loops import counted_loops, more_rounds


def halved(x: Tensor) -> Tensor:
    for _ in range(9):
        x = x / 2
    return x


class Root(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, times: int) -> Tensor:
        y = torch.ones_like(x)
        for _ in range(12):
            y = (y + x / y) / 2
        for k in range(3):
            y = y + 0 * k
        for _ in range(times):
            y = y + 0
        return halved(y)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        for _ in range(7):
            g = g + 0
        return g, None


class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Root.apply(x, 2)


def test_rounds_that_are_alike_and_counted_by_a_number() -> None:
    for op in (Root, Layer()):
        found = [(f.__qualname__, count) for f, count in counted_loops(from_object(op))]
        assert found == [("Root.forward", 12), ("halved", 9)]


def test_other_loops_and_later_calls_are_as_before() -> None:
    x = torch.tensor([1.0])
    with more_rounds(halved, 9, 2):
        assert float(halved(x)) == 2.0**-18
    with more_rounds(halved, 12, 2):
        assert float(halved(x)) == 2.0**-9
    assert float(halved(x)) == 2.0**-9
    assert "range" not in globals()
