"""All rules together call an operator at most three times as often as the numerics alone."""

from __future__ import annotations

import pytest

from tests.benchmarks.check_cost import GOAL_CALLS, ROOT, calls_beside_numerics

EXAMPLES = ("elementwise.py:Square", "elementwise.py:Exp", "linear.py:Linear")


@pytest.mark.parametrize("name", EXAMPLES)
def test_rules_call_sparingly(name: str) -> None:
    called, numerics = calls_beside_numerics(f"{ROOT}/examples/right/{name}")
    assert numerics < called <= GOAL_CALLS * numerics
