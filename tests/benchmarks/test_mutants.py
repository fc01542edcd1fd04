"""The benchmark of mutants: what is changed, and which mutants count."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from tests.benchmarks.mutants import _alike, original_row, plant
from tests.benchmarks.support.mutations import mutations

SOURCE = """\
def forward(x, w):
    return x * w + 1


def backward(ctx, g):
    x, w = ctx.saved_tensors
    gw = (-g * x).sum(0)
    for k in range(2):
        gw += 0.5 * x[k]
    return g * (x > 0), gw
"""


def test_a_mutation_changes_one_line_of_backward() -> None:
    found = list(mutations(SOURCE))
    before = SOURCE.splitlines()
    for one in found:
        ast.parse(one.text)
        after = one.text.splitlines()
        changed = [k + 1 for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert changed == [one.line]
        assert one.line > before.index("def backward(ctx, g):")
    lines = {(one.words, one.text.splitlines()[one.line - 1].strip()) for one in found}
    assert {
        ("a minus is left out", "gw = ((g) * x).sum(0)"),
        ("`sum` is left out", "gw = (-g * x)"),
        ("nothing is accumulated", "gw = 0.5 * x[k]"),
        ("another number", "gw += 0.75 * x[k]"),
        ("compared by >=", "return g * (((x) >= (0))), gw"),
        ("None is returned", "return g * (x > 0), None"),
        ("the second factor is missing", "return (g), gw"),
    } <= lines


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (torch.ones(2), torch.ones(2) * (1 + 1e-6), True),
        (torch.ones(2), torch.ones(2) * 1.01, False),
        (torch.zeros(2), None, True),
        (None, torch.ones(2), False),
        (None, None, True),
    ],
)
def test_mutants_with_other_gradients_count(
    one: torch.Tensor | None, other: torch.Tensor | None, alike: bool
) -> None:
    assert _alike(one, other) is alike


def test_mutants_are_planted_as_a_set(tmp_path: Path) -> None:
    cases, _ = plant(["an"], 1, 0, tmp_path / "set")
    assert len(cases) >= 50
    for case in cases:
        assert case.path("wrong").read_text() != case.path("right").read_text()
        _, _, rest = case.group.partition("_")
        assert original_row("an", rest.rpartition("_")[0])["object"] == case.name
