"""Indices below zero that stand for nothing, where the code asks which they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any, *samples: Any) -> TargetReport:
    return gradlint.check(thing, list(samples) or None, seed=0, order=1).targets[0]


class Gathered(Function):
    """Rows of a table, zeros where the index is below zero."""

    @staticmethod
    def forward(ctx, table, rows):
        empty = rows < 0
        ctx.save_for_backward(rows)
        ctx.count = len(table)
        return table[rows.clamp(min=0)].masked_fill(empty[:, None], 0.0)

    @staticmethod
    def backward(ctx, g):
        (rows,) = ctx.saved_tensors
        kept = g.masked_fill((rows < 0)[:, None], 0.0)
        of_table = g.new_zeros(ctx.count, g.shape[1])
        return of_table.index_add(0, rows.clamp(min=0), kept), None


class FillsItsGradient(Gathered):
    @staticmethod
    def backward(ctx, g):
        g.masked_fill_((ctx.saved_tensors[0] < 0)[:, None], 0.0)
        return Gathered.backward(ctx, g)


class ForgetsTheMark(Gathered):
    @staticmethod
    def backward(ctx, g):
        (rows,) = ctx.saved_tensors
        return g.new_zeros(ctx.count, g.shape[1]).index_add(0, rows.clamp(min=0), g), None


class Refuses(Gathered):
    """Rows of a table."""

    @staticmethod
    def forward(ctx, table, rows):
        if bool((rows < 0).any()):
            raise IndexError("no such row")
        return Gathered.forward(ctx, table, rows)


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (Gathered, None),
        (Refuses, None),
        (FillsItsGradient, "GL602"),
        (ForgetsTheMark, "GL401"),
    ],
)
def test_marked_indices_of_inferred_inputs(op: Any, code: str | None) -> None:
    report = check(op)
    found = [item for item in report.findings if item.severity != "info"]
    assert [item.code for item in found][:1] == ([code] if code else [])
    assert not found or "where -1 occurs in rows" in {item.sample for item in found}


def test_marked_indices_beside_given_ones() -> None:
    given = torch.randn(4, 3, dtype=torch.float64).requires_grad_(), torch.tensor([3, 0, 1, 3])
    assert check(Gathered, given).verdict == "pass"
    (found, *_) = check(ForgetsTheMark, given).findings
    assert (found.code, found.sample) == ("GL401", "where -1 occurs in `rows`")
