"""Every planted bug is found under its code, and its fixed twin is silent under that rule."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.benchmarks.planted_bugs import FAMILIES, quiet, summary, told
from tests.benchmarks.support.planted_bugs import Bug, all_bugs

BUGS = all_bugs()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.code} {bug.name}")
def test_bug_is_found_and_twin_is_silent(bug: Bug) -> None:
    with quiet():
        result = told(bug, torch_too=False, select=[bug.code])
    assert result.found
    assert result.silent, result.alarms


def test_every_family_is_there_and_no_bug_twice() -> None:
    families = {bug.code[:3] for bug in BUGS}
    assert families == set(FAMILIES)
    assert len(BUGS) >= 60
    assert [name for name, count in Counter(bug.name for bug in BUGS).items() if count > 1] == []


def test_the_summary_counts() -> None:
    bug = next(bug for bug in BUGS if bug.code == "GL101")
    with quiet():
        result = told(bug, select=["GL1"])
    assert (result.slow, result.codes) == (True, ["GL101"])
    assert summary([result])[-1] == ("all", "1", "1", "1", "1", "1")
