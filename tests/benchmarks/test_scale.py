"""A part of the benchmark on one wrong element among many."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.scale import CLEAN, Result, Trial, attempt, cell, rows, trials
from tests.benchmarks.support.faults import FACTOR, FAULTS, FLIPPED, ZEROED
from tests.benchmarks.support.scales import SCALES, TRIPLE, problem_of
from tests.benchmarks.support.tally import CAUGHT, DECLARED, SILENT


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", SCALES)
def test_every_fault_is_caught(op, dtype):
    for fault in FAULTS:
        result = attempt(Trial(op, 1000, dtype, 3, fault))
        assert (result.outcome, result.blamed, result.unsure) == (CAUGHT, 0, 0), result


@pytest.mark.parametrize("op", SCALES)
def test_no_false_alarm(op):
    result = attempt(Trial(op, 1000, "float64", 4, None))
    assert (result.outcome, result.blamed, result.unsure) == (CLEAN, 0, 0), result


@pytest.mark.parametrize("seed", range(3))
def test_one_element_of_many(seed):
    result = attempt(Trial("square", 100_000, "float64", seed, ZEROED))
    assert result.outcome == CAUGHT


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_wrong_factor_where_fast_mode_passes(size):
    assert attempt(Trial(TRIPLE, size, "float64", 0, None)).outcome == CAUGHT


def test_what_is_planted():
    right, share = problem_of("square", 100, torch.float64, 7, None)
    assert share == 0.0
    ones = {"output": torch.ones(100, dtype=torch.float64)}
    (gradient,) = right.pull(ones)
    assert gradient is not None
    for fault, factor in ((FACTOR, 1.01), (ZEROED, 0.0), (FLIPPED, -1.0)):
        wrong, share = problem_of("square", 100, torch.float64, 7, fault)
        (found,) = wrong.pull(ones)
        assert found is not None
        changed = (found != gradient).nonzero().flatten().tolist()
        assert len(changed) == (100 if fault == FACTOR else 1)
        assert float(found[changed[0]]) == pytest.approx(factor * float(gradient[changed[0]]))
        assert 0.0 < share < 1.0


def test_planned_trials():
    found = list(trials(["relu", TRIPLE], [10, 20], ["float64"], {10: 2, 20: 1}))
    assert len(found) == 3 * (4 + 1)
    assert found[0].size == 10
    assert [trial.fault for trial in found if trial.op == TRIPLE] == [None] * 3


def test_table():
    def result(outcome: str, fault: str | None, blamed: int = 0) -> Result:
        return Result(Trial("relu", 10, "float64", 0, fault), outcome, blamed, 0, 0.0)

    results = [result(CAUGHT, ZEROED)] * 3
    assert cell(results) == "3 of 3"
    assert cell([*results, result(DECLARED, FLIPPED), result(SILENT, FACTOR)]) == "3 ?1 !1"
    assert cell([result(CLEAN, None)]) == "–"
    found = rows([*results, result(CLEAN, None, blamed=2)], "float64", [10])
    assert found[0] == ("float64", "10")
    assert ("relu", "3 of 3") in found
    assert ("right inputs blamed", "2") in found
