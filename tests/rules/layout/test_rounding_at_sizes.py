"""What rounding leaves where terms cancel at a size is information; a fault at that size is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint

Function = torch.autograd.Function


class ToSegment(Function):
    """Distances from points to segments: of one coordinate, most points lie on their segment."""

    @staticmethod
    def forward(ctx: Any, p: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        along = b - a
        t = ((p - a) * along).sum(-1, keepdim=True) / (along * along).sum(-1, keepdim=True)
        t = t.clamp(0, 1)
        off = p - (a + t * along)
        distance = off.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(off, distance, t)
        return distance

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        off, distance, t = ctx.saved_tensors
        n = g * off / distance.clamp_min(1e-12)
        return n, -(1 - t) * n, -t * n

    @staticmethod
    def sample_inputs() -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        p, a, b = torch.rand(3, 7, 3, generator=generator, dtype=torch.float64)
        return p, a, b


class EndsExchanged(ToSegment):
    """The same, wrong for a single coordinate."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n, of_a, of_b = ToSegment.backward(ctx, g)
        return (n, of_b, of_a) if n.shape[-1] == 1 else (n, of_a, of_b)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (ToSegment, {("info", "rounding")}),
        (EndsExchanged, {("error", None)}),
    ],
)
def test_rounding_at_a_size(op: type[Function], expected: set[tuple[str, str | None]]) -> None:
    found = gradlint.check(op, select="GL706", seed=0).targets[0].findings
    assert {(item.severity, item.grounds.explained) for item in found} == expected
