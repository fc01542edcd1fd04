"""A small seeded part of the benchmark of named causes."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks import diagnosis
from tests.benchmarks.support.planted import OPERATORS

SEED = 11


@pytest.mark.parametrize("name", ["linear, weight", "softmax", "bias", "two outputs"])
def test_causes_of_planted_faults_are_named(name, monkeypatch):
    chosen = tuple(operator for operator in OPERATORS if operator.name == name)
    monkeypatch.setattr(diagnosis, "OPERATORS", chosen)
    small = [case for case in diagnosis.cases(torch.float64, SEED) if case[1] == 0]
    assert len(small) > 10
    for operator, size, fault, names in small:
        found = diagnosis.judged(operator, size, fault, names, torch.float64, SEED)
        assert (found.verdict, fault.cause) == (diagnosis.RIGHT, fault.cause), found.named
