"""Large values of what masks leave out: neither forward nor backward must read them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint


class Ratio(Function):
    """The sum of exp(b - a) where ``mask`` is True. What stands elsewhere is ignored."""

    guarded = True

    @staticmethod
    def forward(ctx, a, b, mask):
        ctx.save_for_backward(a, b, mask)
        return (torch.where(mask, b - a, -torch.inf).exp()).sum()

    @classmethod
    def backward(cls, ctx, g):
        a, b, mask = ctx.saved_tensors
        gap = torch.where(mask, b - a, 0.0) if cls.guarded else b - a
        pull = g * gap.exp() * mask
        return -pull, pull, None


class UnguardedRatio(Ratio):
    guarded = False


class ReadRatio(Function):
    """Forward reads what the mask leaves out, too: nothing of it is ignored."""

    @staticmethod
    def forward(ctx, a, b, mask):
        ctx.save_for_backward(a, b)
        return ((b - a).exp() + mask).sum()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return -g * (b - a).exp(), g * (b - a).exp(), None


LABELS = [
    f"where elements that `mask` leaves out are {sign}10000, or its negative" for sign in ("", "-")
]


@pytest.mark.parametrize(
    ("op", "tried", "loud"),
    [(Ratio, 0, set()), (UnguardedRatio, 1, {"GL302"}), (ReadRatio, 0, set())],
)
def test_what_a_mask_leaves_out_may_be_anything(op, tried, loud):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(3, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    mask = torch.tensor([True, True, False, True]).expand(3, 4).clone()
    flags = {"seed": 0, "order": 1, "select": ["GL302", "GL401"]}
    [report] = gradlint.check(op, [(a, b, mask)], **flags).targets
    assert sum(item.label in LABELS for item in report.tried) == tried
    assert {item.code for item in report.findings if item.severity != "info"} == loud
