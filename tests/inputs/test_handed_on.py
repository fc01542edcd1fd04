"""Documentation of a Function tells of the arguments that a module hands on to it as they are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs.handed_on import handed_on, prose_about
from gradlint.targets.build import from_object


class Total(Function):
    """The sum over each sequence, squared: rows (B, T, D), lengths (B,) in 1..T -> (B, D).

    An empty sequence would count as one that is not.
    """

    @staticmethod
    def forward(ctx, r, lengths):
        within = torch.arange(r.shape[1]) < lengths.clamp(min=1)[:, None]
        ctx.save_for_backward(r, lengths)
        return (r.square() * within[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        r, lengths = ctx.saved_tensors
        within = torch.arange(r.shape[1]) < lengths[:, None]
        return 2 * r * within[..., None] * g[:, None], None


class TotalUnmasked(Total):
    """Rows (B, T, D), lengths (B,) in 1..T -> (B, D), with a gradient of items beyond the end."""

    @staticmethod
    def backward(ctx, g):
        r, _ = ctx.saved_tensors
        return 2 * r * g[:, None], None


class Pooled(nn.Module):
    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        return Total.apply(rows, lengths)


class PooledWrongly(nn.Module):
    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        return TotalUnmasked.apply(rows, lengths)


class Projected(nn.Module):
    """What it hands on under the name of an argument is something else."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        rows = self.project(rows)[None]
        return Total.apply(rows, lengths)


def exchanged(lengths: Tensor, r: Tensor) -> Tensor:
    """Its names are those of other arguments there."""
    return Total.apply(lengths, r)


def test_what_is_handed_on_as_it_is() -> None:
    both = frozenset({"rows", "lengths"})
    assert handed_on(from_object(Pooled)) == [(Total, both)]
    assert handed_on(from_object(Projected)) == [(Total, frozenset({"lengths"}))]
    assert handed_on(from_object(exchanged)) == [(Total, frozenset())]
    assert handed_on(from_object(Total)) == []
    assert "in 1..T" in prose_about(from_object(Projected), "lengths")
    assert "in 1..T" not in prose_about(from_object(Projected), "rows")


@pytest.mark.parametrize("seed", range(3))
def test_shapes_and_values_are_those_that_are_documented(seed: int) -> None:
    sample = infer(from_object(Pooled), seed)[0]
    rows, lengths = sample.args
    assert rows.dim() == 3
    assert lengths.shape == rows.shape[:1]
    assert 1 <= int(lengths.min()) <= int(lengths.max()) == rows.shape[1]


@pytest.mark.parametrize(("op", "wrong"), [(Pooled, set()), (PooledWrongly, {"rows"})])
def test_no_length_is_zero_where_documentation_begins_at_one(op, wrong) -> None:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL401"]).targets
    assert {f.input for f in report.findings if f.severity != "info"} == wrong
    assert not any("is 0" in sample.label for sample in report.samples)
