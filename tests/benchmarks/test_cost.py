"""The benchmark of cost at small sizes: calls, and the element that is named."""

from __future__ import annotations

import pytest

from tests.benchmarks import cost
from tests.benchmarks.support.faults import FLIPPED, ZEROED


@pytest.mark.parametrize("checker", ["judgement behind GL401", "gradlint.gradcheck"])
@pytest.mark.parametrize("size", [100, 100_000])
def test_calls_of_a_passing_operator(checker, size):
    forward, backward = cost.calls(checker, size)
    assert 6 <= forward <= cost.GOAL_FORWARD
    assert 2 <= backward <= cost.GOAL_BACKWARD


@pytest.mark.parametrize("fault", [ZEROED, FLIPPED])
def test_one_wrong_element_is_named(fault):
    exact, forward, _ = cost.name_element(100_000, fault, 0.765432)
    assert exact
    assert forward <= cost.GOAL_LOCATE


def test_a_fault_does_not_stay():
    cost.name_element(100, ZEROED, 0.5)
    assert cost.Counted.fault is None
    assert cost.calls("gradlint.gradcheck", 100)[0] > 0


def test_turns_are_medians():
    calls: list[str] = []
    times = cost.in_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3
    assert set(times) == {"a", "b"}
    assert all(seconds >= 0.0 for seconds in times.values())
