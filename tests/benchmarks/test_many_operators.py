"""Parts of the benchmark of many operators in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.many_operators import FEW, Cost, cost, each, spread, write


def test_what_is_written(tmp_path: Path) -> None:
    targets = write(tmp_path, 7, 3)
    assert targets[:4] == [f"operators_3_0.py:Op{n}" for n in (1, 2, 3)] + ["operators_3_3.py:Op4"]
    assert len(targets) == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"operators_3_{first}.py" for first in (0, 3, 6)
    ]
    assert spread(targets, 2) == [targets[0], targets[3]]
    assert spread(targets, 0) == targets


def test_the_cost_of_one_more() -> None:
    assert each([Cost(5.0, 9.0), Cost(15.0, 9.0)], FEW + 20) == pytest.approx(0.5)


def test_the_operators_pass(tmp_path: Path) -> None:
    found = cost(tmp_path, write(tmp_path, 2, 1), ["--select", "GL003", "-j", "1"])
    assert found.processor_s > 0.0
    assert found.clock_s > 0.0
