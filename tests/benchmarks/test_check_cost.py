"""All rules together call an operator at most three times as often as the numerics alone."""

from __future__ import annotations

import pytest

from tests.benchmarks.check_cost import GOAL_CALLS, ROOT, calls_beside_numerics

#: The fewest calls of so many checks count.
ROUNDS = 3
EXAMPLES = ("elementwise.py:Square", "elementwise.py:Exp", "linear.py:Linear")


@pytest.mark.parametrize("name", EXAMPLES)
def test_rules_call_sparingly(name: str) -> None:
    # Calls that took long are timed again, so that a busy machine may add a few.
    counts = (calls_beside_numerics(f"{ROOT}/examples/right/{name}") for _ in range(ROUNDS))
    assert any(numerics < called <= GOAL_CALLS * numerics for called, numerics in counts)
