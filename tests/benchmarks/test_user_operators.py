"""The benchmark of operators as users write them: what it counts, and a part of it."""

from __future__ import annotations

import argparse
import difflib

import pytest

from tests.benchmarks import user_operators
from tests.benchmarks.user_operators import HALVES, Case, Told, all_cases, counts, fitting_lines


@pytest.mark.parametrize("half", HALVES)
def test_every_set_has_fifty_pairs(half: str) -> None:
    cases = all_cases(half)
    assert len(cases) == 50 * len(HALVES[half])
    assert len({case.key for case in cases}) == len(cases)
    for case in cases:
        assert case.shows in ("first", "second", "both")
        before, after = (case.path(which).read_text().splitlines() for which in ("right", "wrong"))
        # One fault, in a line or a few, for each operator of a file.
        changes = difflib.SequenceMatcher(None, before, after).get_opcodes()
        operators = sum((one.folder, one.group) == (case.folder, case.group) for one in cases)
        assert sum(tag != "equal" for tag, *_ in changes) >= operators
        assert fitting_lines(case)


def _case(shows: str = "first") -> Case:
    case = all_cases("open")[0]
    return Case(case.folder, case.group, case.name, "", shows, True, ("GL401",))


def test_the_table_counts() -> None:
    case = _case()
    line = min(fitting_lines(case))
    found = [
        Told(case, "wrong", "fail", [("GL401", "error", line, "")]),
        Told(case, "wrong", "fail", [("GL706", "error", line, "")]),
        Told(case, "wrong", "pass"),
        Told(_case("second"), "wrong", "fail", [("GL501", "error", line, "")]),
        Told(case, "right", "fail", [("GL502", "warning", line, "")]),
        Told(case, "right", "fail", [("GL003", "error", line, "")]),
        Told(case, "right", "error", [("GL002", "warning", None, "")]),
        Told(case, "right", "pass"),
    ]
    rows = dict(counts(found))
    assert rows["found"] == "3 (75.0 %)"
    assert rows["with a fitting code and line first"] == "1 (25.0 %)"
    assert rows["found at first order"] == "2 (66.7 %)"
    assert rows["red at first order"] == "1 (25.0 %)"
    assert rows["red at any order, if right at both"] == "2 (50.0 %)"
    assert rows["without usable inputs"] == "1 (12.5 %)"


@pytest.mark.parametrize("inputs", ["inferred", "given"])
def test_a_pair(inputs: str) -> None:
    options = argparse.Namespace(
        inputs=inputs, only="a/norms:LayerNormFn", which=None, order=2, dtype="", jobs=1
    )
    told = user_operators.told_of("open", options, 0)
    assert [(item.which, item.red(), item.not_run) for item in told] == [
        ("right", False, ""),
        ("wrong", True, ""),
    ]
