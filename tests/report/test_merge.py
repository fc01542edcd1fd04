"""The shards of one run make one report; anything else is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.report import (
    BaselineUse,
    Finding,
    Location,
    Report,
    RunError,
    TargetReport,
    Unchecked,
)
from gradlint.report.merge import merge_reports


def shard(number: int, of: int, *names: str, **changes: Any) -> tuple[str, Report]:
    made: dict[str, Any] = {
        "targets": [
            TargetReport(f"ops.py:{name}", "function", "pass", position=[ord(name)])
            for name in names
        ],
        "seed": 5,
        "gradlint": "0.1.0",
        "environment": {"torch": "2.13.0", "platform": f"machine {number}"},
        "duration_s": 2.0,
        "settings": {"seed": 5, "order": 2, "jobs": number, "shard": f"{number}/{of}"},
        "skipped": {"empty.py": "holds no operator"},
        "left_out": {
            f"not in shard {number}/{of}": [f"ops.py:{n}" for n in "abcdef" if n not in names],
            "did not change": ["old.py:Op"],
        },
        "shard": f"{number}/{of}",
    }
    return f"{number}.json", Report(**{**made, **changes})


def refused(*reports: tuple[str, Report]) -> GradlintError:
    with pytest.raises(GradlintError) as caught:
        merge_reports(reports)
    return caught.value


def test_shards_make_the_report_of_one_run() -> None:
    merged = merge_reports([shard(2, 3, "b", "e"), shard(1, 3, "a", "d"), shard(3, 3, "c", "f")])
    assert [target.target[-1] for target in merged.targets] == list("abcdef")
    assert merged.left_out == {"did not change": ["old.py:Op"]}
    assert merged.skipped == {"empty.py": "holds no operator"}
    assert merged.shard == ""
    assert merged.duration_s == 6.0
    assert merged.environment == {
        "torch": "2.13.0",
        "platform": "machine 2; machine 1; machine 3",
    }
    assert "shard" not in merged.settings
    assert merged.exit_code == 0


def test_one_file_stays_as_it_is() -> None:
    merged = merge_reports([shard(1, 3, "a")])
    assert merged.shard == "1/3"
    assert len(merged.targets) == 1


def test_the_exit_code_is_that_of_the_whole_run() -> None:
    warned = shard(2, 2, "b")
    warned[1].targets[0].findings = [Finding("GL302", "nan", "warning", "NaN")]
    assert merge_reports([shard(1, 2, "a"), warned]).exit_code == 1
    assert merge_reports([shard(1, 2, "a"), warned], "error").exit_code == 0
    assert merge_reports([shard(1, 2, "a"), shard(2, 2, interrupted=True)]).exit_code == 130
    absent, broken = RunError("usage", "no such target"), RunError("internal", "KeyError")
    both = [shard(1, 2, "a", errors=[absent]), shard(2, 2, "b", errors=[absent])]
    assert merge_reports(both).exit_code == 2
    assert merge_reports(both).errors == [absent]
    assert merge_reports([shard(1, 2, "a"), shard(2, 2, errors=[broken])]).exit_code == 3
    nothing = [shard(1, 2, left_out={}), shard(2, 2, left_out={})]
    assert merge_reports(nothing).exit_code == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gradlint": "0.2.0"}, "gradlint 0.2.0 instead of 0.1.0"),
        ({"seed": 6}, "seed 6 instead of 5"),
        (
            {"settings": {"seed": 5, "order": 1, "select": ["GL4"]}},
            "order 1 instead of 2; select ['GL4'] instead of None",
        ),
        ({"fail_on": "error"}, "fail-on error instead of warning"),
    ],
)
def test_reports_of_different_runs(changes: dict[str, Any], message: str) -> None:
    error = refused(shard(1, 2, "a"), shard(2, 2, "b", **changes))
    assert error.place == "2.json"
    assert error.message == f"is not of the same run as 1.json: {message}"


def test_what_fails_may_be_chosen_for_all_of_them() -> None:
    other = shard(2, 2, "b", fail_on="error")
    assert merge_reports([shard(1, 2, "a"), other], "info").fail_on == "info"


def test_a_missing_shard_does_not_pass() -> None:
    error = refused(shard(1, 4, "a"), shard(3, 4, "b"))
    assert error.message == "shards 2/4, 4/4 are missing"
    error = refused(shard(1, 3, "a"), shard(3, 3, "b"))
    assert error.message == "shard 2/3 is missing"


def test_a_target_that_is_there_twice() -> None:
    error = refused(shard(1, 2, "a"), shard(2, 2, "a"))
    assert str(error).startswith("2.json: ops.py:a is in 1.json, too")


def test_a_module_that_no_shard_could_import_is_told_once() -> None:
    def broken() -> TargetReport:
        finding = Finding("GL001", "target_not_loaded", "error", "no module named x")
        return TargetReport("pkg.mod", verdict="error", findings=[finding], position=[1])

    first, second = shard(1, 2, "a"), shard(2, 2, "b")
    for _, report in (first, second):
        report.targets.append(broken())
    assert len(merge_reports([first, second]).targets) == 3
    second[1].targets[-1].findings[0].code = "GL006"
    assert str(refused(first, second)).startswith("2.json: pkg.mod is in 1.json, too")


def test_what_one_shard_checks_is_checked() -> None:
    new, old = (Unchecked(name, "function", Location("ops.py", 3)) for name in ("New", "Old"))
    reports = [shard(1, 2, "a", unchecked=[new, old]), shard(2, 2, "b", unchecked=[new])]
    merged = merge_reports(reports)
    assert merged.unchecked == [new]
    assert merged.exit_code == 1


def test_what_the_baseline_holds_is_counted_over_all_shards() -> None:
    uses = [BaselineUse("b.json", n, [{"op": "x"}, {"op": str(n)}]) for n in (1, 2)]
    reports = [shard(1, 2, "a", baseline=uses[0]), shard(2, 2, "b", baseline=uses[1])]
    assert merge_reports(reports).baseline == BaselineUse(
        "b.json", 3, [{"op": "x"}, {"op": "1"}, {"op": "2"}]
    )


def test_without_positions_the_files_keep_their_order() -> None:
    first, second = shard(2, 2, "b"), shard(1, 2, "a")
    second[1].targets = [replace(second[1].targets[0], position=[])]
    assert [t.target[-1] for t in merge_reports([first, second]).targets] == ["b", "a"]
