"""The benchmark of operators as users write them: what it counts, and a part of it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.benchmarks import user_operators
from tests.benchmarks.user_operators import (
    HALVES,
    Case,
    Told,
    all_cases,
    changes,
    counts,
    drawn,
    fitting_lines,
    steadiness,
    steady_rows,
)


@pytest.mark.parametrize("half", HALVES)
def test_every_set_has_at_least_fifty_pairs(half: str) -> None:
    cases = all_cases(half)
    assert all(n >= 50 for n in Counter(case.folder for case in cases).values())
    assert len({case.folder for case in cases}) == len(HALVES[half])
    assert len({case.key for case in cases}) == len(cases)
    assert {case.shows for case in cases} <= {"first", "second", "both"}
    # One fault, in a line or a few, for each operator of a file.
    operators = Counter((case.folder, case.group) for case in cases)
    for file, count in operators.items():
        assert len(changes(*file)) >= count
    assert all(map(fitting_lines, cases))


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
        inputs=inputs, only="a/norms:LayerNormFn", which="both", order=2, dtype="", jobs=1, sample=0
    )
    told = user_operators.told_of("open", options, 0)
    assert [(item.which, item.red(), item.not_run) for item in told] == [
        ("right", False, ""),
        ("wrong", True, ""),
    ]


def test_a_sample_is_drawn_at_random_and_the_same_every_time() -> None:
    cases = all_cases("open")
    few = drawn(cases, 60)
    assert few == drawn(cases, 60)
    assert len({case.key for case in few}) == 60
    assert len({case.folder for case in few}) > 5
    assert [case for case in cases if case in few] == few
    assert drawn(cases, 0) == cases


def test_seeds_are_compared_operator_by_operator() -> None:
    case, other = _case(), all_cases("open")[1]
    fails = [("GL401", "error", 3, "")]
    lost = [("GL502", "warning", 3, "")]
    found = [
        *((seed, Told(case, "right", "pass")) for seed in range(3)),
        (0, Told(other, "right", "pass")),
        (1, Told(other, "right", "fail", lost)),
        (2, Told(other, "right", "fail", fails)),
        (0, Told(case, "wrong", "fail", fails)),
        (1, Told(case, "wrong", "fail", lost)),
        (0, Told(other, "wrong", "fail", fails)),
    ]
    several = steadiness(found)
    # A wrong operator under one seed has nothing to be compared with.
    assert [(one.which, one.same) for one in several] == [
        ("right", True),
        ("right", False),
        ("wrong", True),
    ]
    assert str(several[1]) == f"right {other.key}: 1 x pass; 1 x fail GL502; 1 x fail GL401"
    assert dict(steady_rows(several)) == {
        "right operators under several seeds": "2",
        "red at first order: under all or none": "1 (50.0 %)",
        "right: the same verdict under all": "1 (50.0 %)",
        "right: the same codes under all": "1 (50.0 %)",
        "wrong operators under several seeds": "1",
        "found: under all or none": "1 (100.0 %)",
        "wrong: the same verdict under all": "1 (100.0 %)",
        "wrong: the same codes under all": "0 (0.0 %)",
    }


def test_a_stopped_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checked: list[tuple[int, str, int]] = []

    def by_name(cases: list[Case], which: str, _: object, seed: int) -> list[Told]:
        if len(checked) == 3:
            raise KeyboardInterrupt
        checked.append((seed, which, len(cases)))
        return [Told(case, which, "pass" if seed or which == "right" else "fail") for case in cases]

    monkeypatch.setattr(user_operators, "by_name", by_name)
    monkeypatch.setattr(user_operators, "TOGETHER", 2)
    saved = tmp_path / "told.jsonl"
    command = ["user_operators", "--seeds", "2", "--sample", "2", "--save", str(saved)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(KeyboardInterrupt):
        user_operators.main()
    assert checked == [(0, "right", 2), (1, "right", 2), (0, "wrong", 2)]
    assert len(saved.read_text().splitlines()) == 6
    with saved.open("a") as file:
        file.write('[1, "wrong", "a/')
    checked[:] = [(0, "", 0)] * 4
    assert user_operators.main() == 0
    assert checked[4:] == [(1, "wrong", 2)]
    (broken,) = (line for line in saved.read_text().splitlines() if line.endswith('"a/'))
    lines = [line for line in saved.read_text().splitlines() if line not in ("", broken)]
    assert [tuple(json.loads(line)[:2]) for line in lines] == [
        (seed, which) for which in ("right", "wrong") for seed in (0, 1) for _ in range(2)
    ]
    assert "under several seeds" in capsys.readouterr().out
