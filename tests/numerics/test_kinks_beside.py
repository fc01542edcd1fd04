"""A kink that bends some outputs a lot and others little is one point."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.numerics.verdict import DIFFERS
from gradlint.targets.build import from_object


class Interpolated(Function):
    """Rows of a table (T, C) between frames, at places (S,)."""

    @staticmethod
    def forward(ctx, table, places):
        low = places.detach().floor().clamp(0, len(table) - 2).long()
        t = places - low
        ctx.save_for_backward(table, low, t)
        return (1 - t)[:, None] * table[low] + t[:, None] * table[low + 1]

    @staticmethod
    def backward(ctx, g):
        table, low, t = ctx.saved_tensors
        to_table = torch.zeros_like(table).index_add(0, low, (1 - t)[:, None] * g)
        to_table = to_table.index_add(0, low + 1, t[:, None] * g)
        return to_table, (g * (table[low + 1] - table[low])).sum(1)


class InterpolatedTwice(Interpolated):
    @staticmethod
    def backward(ctx, g):
        to_table, to_places = Interpolated.backward(ctx, g)
        return to_table, 2 * to_places


@pytest.mark.parametrize(("op", "wrong"), [(Interpolated, False), (InterpolatedTwice, True)])
def test_a_small_kink_beside_a_large_one(op: type[Function], wrong: bool) -> None:
    """At place 1 the second column changes its slope from 0.36 to -0.38, and the first one from
    -1.53 to -1.55."""
    table = torch.tensor(
        [[1.54, 0.48], [0.01, 0.84], [-1.54, 0.46], [0.57, -0.40]], dtype=torch.float64
    )
    places = torch.tensor([0.4, 1.0, 2.3], dtype=torch.float64)
    given = (table.requires_grad_(), places.requires_grad_())
    subject = Subject(from_object(op), Sample("given", "given", given), Settings(seed=0))
    decision = subject.first_order
    assert decision.kinked >= 1
    assert (decision.verdicts[1] == DIFFERS) is wrong
