"""GL401 where the gradient is wrong because the sample's own tensors are not contiguous."""

from __future__ import annotations

import torch
from torch.autograd import Function

from gradlint.rules.catalogue import by_code

RULE = by_code("GL401")


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


class ReadsMemory(Function):
    """backward reads the memory of x in the order of a contiguous tensor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.as_strided(x.shape, (x.shape[1], 1)).cos()


class Wrong(Function):
    """Wrong in every layout."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.as_strided(x.shape, (x.shape[1], 1)).sin()


def test_the_layout_is_named(probed) -> None:
    (found,) = probed(RULE, ReadsMemory, draw(4, 3).mT).findings
    assert found.cause == "layout-ignored"
    assert "contiguous in memory, with the same values, the gradient is right" in found.cause_text
    assert ".contiguous()" in found.help
    assert probed(RULE, ReadsMemory, draw(4, 3)).verdict == "pass"


def test_the_layout_is_not_blamed_for_another_fault(probed) -> None:
    for x in (draw(4, 3).mT, draw(4, 3)):
        (found,) = probed(RULE, Wrong, x).findings
        assert found.cause != "layout-ignored"
