"""Every planted bug of this family is found by its rule; the twin is silent under all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradlint.rules.catalogue import CATALOGUE, by_code
from tests.benchmarks.support.planted_bugs.transforms import BUGS

RULES = [rule for rule in CATALOGUE if rule.code in ("GL901", "GL902", "GL903", "GL905", "GL906")]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_is_found(bug: Any, probed: Callable[..., Any]) -> None:
    rule = by_code(bug.code)
    outcome = probed(rule, bug.faulty, *bug.inputs())
    assert outcome.verdict == "fail"
    assert {finding.code for finding in outcome.findings} == {bug.code}
    assert {finding.severity for finding in outcome.findings} == {"error"}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_twin_is_silent(bug: Any, probed: Callable[..., Any]) -> None:
    for rule in RULES:
        outcome = probed(rule, bug.fixed, *bug.inputs())
        assert outcome.findings == []
        if rule.code == bug.code:
            assert outcome.verdict == "pass"
