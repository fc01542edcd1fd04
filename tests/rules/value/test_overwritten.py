"""Forward puts values in places that indices tell, one over the other where two are alike: which
stays is not defined, so that gradlint's own choice of such indices blames nobody."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint


class Put(Function):
    @staticmethod
    def forward(ctx, values, indices, size):
        ctx.save_for_backward(indices)
        y = values.new_zeros(size, *values.shape[1:])
        y[indices] = values
        return y

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        return g[indices], None, None


class PutTwice(Put):
    """Its gradient is wrong wherever something is put."""

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        return 2 * g[indices], None, None


class Added(Function):
    """Near them: what goes to one place is added, and backward takes the mean of it."""

    @staticmethod
    def forward(ctx, values, indices, size):
        ctx.save_for_backward(indices)
        return values.new_zeros(size, *values.shape[1:]).index_add(0, indices, values)

    @staticmethod
    def backward(ctx, g):
        (indices,) = ctx.saved_tensors
        count = torch.zeros(len(g), dtype=g.dtype).index_add(0, indices, g.new_ones(len(indices)))
        return (g / count.clamp(min=1)[:, None])[indices], None, None


def pad(values, indices, batch, length):
    return Put.apply(values, indices, batch * length).unflatten(0, (batch, length))


def loud(report: gradlint.Report) -> set[str]:
    return {item.code for item in report.findings if item.severity != "info"}


@pytest.mark.parametrize(
    ("op", "expected"),
    [(pad, set()), (PutTwice, {"GL401"}), (Added, {"GL401"})],
)
@pytest.mark.parametrize("seed", range(3))
def test_at_indices_that_gradlint_chose(op, expected, seed: int) -> None:
    assert loud(gradlint.check(op, seed=seed, order=1, select=["GL0", "GL401"])) == expected


def test_given_indices_count() -> None:
    values = torch.randn(3, 2, dtype=torch.float64).requires_grad_()
    inputs = [(values, torch.tensor([2, 0, 2]), 2, 2)]
    assert loud(gradlint.check(pad, inputs, seed=0, order=1, select=["GL401"])) == {"GL401"}
