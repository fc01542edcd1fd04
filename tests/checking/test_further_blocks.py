"""Faults that show only where blocks are several, or groups are not as many as their members."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


def wrong_at(report: TargetReport) -> list[str]:
    return [item.sample for item in report.findings if item.code == "GL401"]


class CentredInBlocks(Function):
    @staticmethod
    def forward(ctx, x, block=64):
        ctx.block = block
        return torch.cat([p - p.mean(-1, keepdim=True) for p in x.split(block, dim=-1)], dim=-1)

    @staticmethod
    def backward(ctx, g):
        parts = g.split(ctx.block, dim=-1)
        return torch.cat([p - p.mean(-1, keepdim=True) for p in parts], dim=-1), None


class CentredInFullBlocks(CentredInBlocks):
    @staticmethod
    def backward(ctx, g):
        size = min(ctx.block, g.shape[-1])
        parts = g.split(ctx.block, dim=-1)
        return torch.cat([p - p.sum(-1, keepdim=True) / size for p in parts], dim=-1), None


class Coarse(Function):
    """Sums of every ``factor`` neighbours; what is left at the end is summed by itself."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor, ctx.size = factor, x.shape[-1]
        return torch.stack([x[..., k : k + factor].sum(-1) for k in range(0, ctx.size, factor)], -1)

    @staticmethod
    def backward(ctx, g):
        return g.repeat_interleave(ctx.factor, -1)[..., : ctx.size], None


class CoarseInFirst(Coarse):
    @staticmethod
    def backward(ctx, g):
        return g[..., :1].expand(*g.shape[:-1], ctx.size), None


class Coarsened(nn.Module):
    def __init__(self, function: type[Function] = Coarse, factor: int = 16) -> None:
        super().__init__()
        self.function, self.factor = function, factor

    def forward(self, x):
        return self.function.apply(x, self.factor)


class CoarsenedInFirst(Coarsened):
    def __init__(self, factor: int = 16) -> None:
        super().__init__(CoarseInFirst, factor)


class Interleaved(Function):
    """Takes turns between ``ways`` equal parts of the last axis."""

    @staticmethod
    def forward(ctx, x, ways):
        if x.shape[-1] % ways:
            raise ValueError("ways must divide the last axis")
        ctx.ways = ways
        return x.unflatten(-1, (ways, x.shape[-1] // ways)).mT.flatten(-2).clone()

    @staticmethod
    def backward(ctx, g):
        return g.unflatten(-1, (g.shape[-1] // ctx.ways, ctx.ways)).mT.flatten(-2), None


class InterleavedAgain(Interleaved):
    @staticmethod
    def backward(ctx, g):
        return g.unflatten(-1, (ctx.ways, g.shape[-1] // ctx.ways)).mT.flatten(-2), None


class Gram(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a @ a.mH

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return (g + g.mH) @ a


class GramOfReal(Gram):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return (g + g.mT) @ a


class Transposable(Function):
    """a b, or the transpose of a times b, of real matrices."""

    @staticmethod
    def forward(ctx, a, b, adjoint=False):
        ctx.save_for_backward(a, b)
        ctx.adjoint = adjoint
        return (a.mT if adjoint else a) @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        of_a = g @ b.mT
        return (of_a.mT if ctx.adjoint else of_a), (a if ctx.adjoint else a.mT) @ g, None


class Root(Function):
    """The root of a number by Newton's method, with a gradient that holds once it has converged."""

    @staticmethod
    def forward(ctx, a, steps=40, every=8):
        root = a.exp()
        for step in range(steps):
            root = 0.5 * (root + a.exp() / root)
            if step % every == 0:
                root = root.clamp(min=1e-6)
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx, g):
        (root,) = ctx.saved_tensors
        return 0.5 * g * root, None, None


PLANTED = {
    "a last block that is shorter": (CentredInFullBlocks, "with block=3"),
    "blocks after the first": (CoarsenedInFirst, "with factor=2 in the constructor"),
    "groups and members exchanged": (
        InterleavedAgain,
        "with ways=2 and axes of size 4 made 6 long",
    ),
    "an adjoint without its conjugate": (GramOfReal, "with complex numbers"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_that_one_block_or_an_equal_number_of_groups_hides_is_found(name):
    thing, where = PLANTED[name]
    assert where in wrong_at(check(thing))


@pytest.mark.parametrize(
    "thing", [CentredInBlocks, Coarse, Coarsened, Interleaved, Gram, Transposable, Root]
)
def test_right_twins_and_iterations_that_need_all_their_steps_pass(thing):
    report = check(thing)
    assert report.verdict == "pass"
    assert wrong_at(report) == []


def test_a_number_of_steps_is_no_block():
    labels = {item.label for item in check(Root).tried}
    assert "with steps=2" not in labels
    assert "with every=2" in labels
