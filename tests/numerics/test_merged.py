"""Inputs that are judged in a row are judged as they are one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gradlint.numerics.concatenated_inputs import by_dtype, merged
from gradlint.numerics.judge import judge
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import AGREES, DIFFERS

FACTORS = {"right": 1.0, "wrong": 1.01}


def product(factor: float) -> Map:
    """x·w + b with ``factor`` times the gradient of w."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    w = torch.randn(4, dtype=torch.float64, generator=generator)
    b = torch.randn(3, 1, dtype=torch.float32, generator=generator)

    def pull_at(values, cotangents):
        x, w, _ = values
        (v,) = cotangents
        return [v * w, factor * (v * x).sum(0), v.sum(1, keepdim=True).to(torch.float32)]

    return Map([x, w, b], [x * w + b], lambda at: [at[0] * at[1] + at[2]], pull_at)


def test_inputs_of_one_dtype_are_put_in_a_row():
    function = product(1.0)
    assert by_dtype(function, [0, 1, 2]) == [[0, 1], [2]]
    assert by_dtype(function, [2, 1]) == [[2], [1]]
    rows = merged(function, [[0, 1], [2]])
    assert [row.shape for row in rows.values] == [(16,), (3,)]
    assert torch.equal(rows.evaluate(rows.values)[0], function.outputs[0])
    claimed = rows.pull([torch.ones(3, 4, dtype=torch.float64)])
    assert [gradient.shape for gradient in claimed] == [(16,), (3,)]
    assert torch.equal(claimed[0][12:], function.values[0].sum(0))


@pytest.mark.parametrize("kind", FACTORS)
def test_a_wrong_member_is_seen_in_its_row(kind):
    found = judge(merged(product(FACTORS[kind]), [[0, 1]]), seed=0)
    assert [item.verdict for item in found.inputs] == [AGREES if kind == "right" else DIFFERS]


def test_directions_stay_in_the_domain_of_each_member():
    function = replace(product(1.0), project=[torch.zeros_like, None, None])
    rows = merged(function, [[0, 1], [2]])
    kept = rows.projected(0, torch.ones(16, dtype=torch.float64))
    assert torch.equal(kept, torch.cat([torch.zeros(12), torch.ones(4)]).double())
