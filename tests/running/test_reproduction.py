"""The same seed shows the same numbers, whatever the user's file draws when it is imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradlint.model.settings import Settings
from gradlint.running.run import run

SOURCE = """\
import random

import torch

layer = torch.nn.Linear(2, 1)
scale = random.random()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * (layer.weight.detach() + scale)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output * (layer.weight.detach() + scale)
"""


@pytest.fixture
def elements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "drawn.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    settings = Settings(select=("GL401",), inputs="ones(3, 2)", jobs=1)

    def found(seed: int) -> list[float]:
        (target,) = run(["drawn.py:Scaled"], replace(settings, seed=seed)).targets
        (finding,) = target.findings
        return [item["returned"] for item in finding.evidence["elements"]]

    return found


def test_what_is_drawn_on_import_comes_from_the_seed(elements: Any) -> None:
    assert elements(3) == elements(3)
    assert elements(3) != elements(4)


def test_parameters_made_on_import_are_not_the_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """\
import torch

start = torch.randn(3, 2)


def op(x):
    assert not torch.equal(x.detach().float(), start)
    return x * x
"""
    (tmp_path / "started.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    settings = Settings(
        select=("GL003",), inputs="randn(3, 2)", jobs=1, seed=0, dtypes=("float32",)
    )
    (target,) = run(["started.py:op"], settings).targets
    assert target.verdict == "pass"
