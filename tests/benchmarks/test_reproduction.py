"""A sample of the planted bugs: each has a script that shows it and is silent on its twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.reproduction.kinds import KINDS
from gradlint.reproduction.wanted import NOT_SHOWN
from gradlint.rules.catalogue import CATALOGUE
from tests.benchmarks.planted_bugs import quiet
from tests.benchmarks.reproduction import shown
from tests.benchmarks.support.planted_bugs import Bug, all_bugs

#: The first bug of every rule; tracing takes seconds each.
BUGS = list({bug.code: bug for bug in reversed(all_bugs()) if bug.code[:4] != "GL90"}.values())


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.code} {bug.name}")
def test_script_shows_the_bug_and_not_its_twin(bug: Bug, tmp_path: Path) -> None:
    with quiet():
        found = shown(bug, tmp_path)
    assert (found.why, found.bug_exits, found.twin_exits) == ("", 1, 0), found.printed


def test_every_rule_has_a_script_or_a_reason() -> None:
    assert sorted([*KINDS, *NOT_SHOWN]) == [rule.code for rule in CATALOGUE]
