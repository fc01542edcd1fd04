"""Reports are read back as they were, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.coverage import PhaseCoverage
from gradlint.model.report import (
    BaselineUse,
    Confirmation,
    Location,
    Report,
    RunError,
    Unchecked,
)
from gradlint.model.sweep import InputSweep, SweepReport, SweepStep, SweepTarget
from gradlint.report.read import read_report
from gradlint.report.render import render


def write(folder: Path, text: str, name: str = "report.json") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(GradlintError) as caught:
        read_report(path)
    assert caught.value.place == path
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("format", ["json", "jsonl"])
@pytest.mark.parametrize("verbose", [0, 1])
def test_what_was_written_reads_the_same(
    tmp_path: Path, every_verdict: Report, format: str, verbose: int
) -> None:
    report = every_verdict
    target = report.targets[1]
    target.findings[0].evidence |= {"worst_z": float("inf"), "nested": [{"a": float("nan")}]}
    target.coverage = {"backward": PhaseCoverage(3, 4, [84])}
    target.confirmation = Confirmation("confirmed", resolution=1e-9)
    target.checks[0].resolution = float("inf")
    target.position = [1]
    report.errors = [RunError("usage", "pkg.ops:Absent: no such name")]
    report.settings = {"order": 2, "select": None, "dtypes": ["float64"]}
    report.baseline = BaselineUse("b.json", 2, [{"op": "a:b", "code": "GL401"}])
    report.unchecked = [Unchecked("New", "function", Location("ops.py", 3))]
    report.left_out, report.shard, report.stopped = {"of another shard": ["a:b"]}, "1/2", True
    found = read_report(write(tmp_path, render(report, format)))
    assert isinstance(found, Report)
    assert render(found, "json") == render(report, "json")
    shown = [render(one, "full", width=80, verbose=verbose) for one in (found, report)]
    assert shown[0] == shown[1]
    assert found.exit_code == report.exit_code == 2


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_hostile_text_reads_the_same(
    tmp_path: Path, hostile: Callable[[str], Report], format: str
) -> None:
    report = hostile("\x1b]0;\x07\ud83d\u2028\x00\n\"'\\ud83d")
    found = read_report(write(tmp_path, render(report, format)))
    assert render(found, "full", width=80) == render(report, "full", width=80)  # type: ignore[arg-type]


def test_keys_that_were_added_are_passed_over_and_new_ones_need_not_be_there(
    tmp_path: Path, report: Report
) -> None:
    entry = report.to_dict()
    entry["later"] = entry["targets"][0]["later"] = {"a": 1}
    for key in ("settings", "fail_on", "errors", "shard", "left_out", "stopped"):
        del entry[key]
    del entry["targets"][0]["position"]
    found = read_report(write(tmp_path, json.dumps(entry)))
    assert isinstance(found, Report)
    assert found.fail_on == "warning"
    assert [target.target for target in found.targets] == [t.target for t in report.targets]


def test_a_file_that_is_cut_off(tmp_path: Path, report: Report) -> None:
    whole = render(report, "json")
    for share in (0.1, 0.5, 0.9, 0.99):
        assert refused(tmp_path, whole[: int(share * len(whole))]).startswith("is cut off")
    lines = render(report, "jsonl").splitlines(keepends=True)
    assert refused(tmp_path, "".join(lines[:-1])).startswith("is cut off")
    assert refused(tmp_path, "".join(lines)[:-9]).startswith("is cut off")
    assert refused(tmp_path, lines[0]).startswith("is cut off")
    assert refused(tmp_path, lines[0] + lines[1] + lines[3]) == (
        "lacks targets: its summary counts 2, 1 are there"
    )
    assert refused(tmp_path, "".join([*lines, lines[1]])) == "line 5: is no line of a report"
    assert refused(tmp_path, "") == "is empty"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is no report of gradlint"),
        ("{}", "is no report of gradlint"),
        ('{"version": "2.1.0", "runs": []}', "is no report of gradlint"),
        ("import torch\n", "is not JSON"),
        ("[" * 100_000, "is no report of gradlint"),
        ('{"targets": ' + "[" * 100_000, "is not JSON"),
        ('{"summary": {}, "targets": []}', "is no report of gradlint: it has no schema_version"),
        (
            '{"schema_version": 2, "summary": {}, "targets": []}',
            "has schema version 2, and this gradlint reads version 1",
        ),
        ('{"schema_version": true, "summary": {}, "targets": []}', "has schema version True"),
    ],
)
def test_what_is_no_report_of_this_version(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("targets", 1, "verdict"), "ok", "targets[1].verdict: Input should be 'error', 'fail'"),
        (("targets", 1, "findings", 0, "severity"), "fatal", "targets[1].findings[0].severity: "),
        (("targets", 1, "findings", 0, "location", "line"), "a", "targets[1].findings[0].location"),
        (("targets", 1, "gradcheck"), {"slow": 3}, "targets[1].gradcheck"),
        (("seed",), "many", "seed: Input should be a valid integer"),
        (("errors",), [{"kind": "other", "text": ""}], "errors[0].kind: "),
    ],
)
def test_values_are_validated(
    tmp_path: Path, report: Report, keys: tuple[Any, ...], value: Any, message: str
) -> None:
    entry = report.to_dict()
    place = entry
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    found = refused(tmp_path, json.dumps(entry))
    assert found.startswith(f"is not as gradlint writes it: {message}")


def test_evidence_of_any_kind_is_shown(tmp_path: Path, report: Report) -> None:
    """Evidence is free: a file that someone has changed is shown, too."""
    entry = report.to_dict()
    odd: list[Any] = ["text", True, [], {}, [1, "a"], {"a": [None]}, None, -1e308, 10**30]
    for value in odd:
        evidence = entry["targets"][1]["findings"][0]["evidence"]
        entry["targets"][1]["findings"][0]["evidence"] = dict.fromkeys(
            [*evidence, "error_map", "outputs", "original", "traceback", "output_tail"], value
        )
        found = read_report(write(tmp_path, json.dumps(entry)))
        for format in ("full", "markdown", "junit", "html", "sarif", "github"):
            assert render(found, format, width=80, verbose=1)  # type: ignore[arg-type]


def test_a_pipe_and_a_folder_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(GradlintError, match="is a folder, not a regular file"):
        read_report(str(tmp_path))
    with pytest.raises(GradlintError, match="No such file"):
        read_report(str(tmp_path / "absent.json"))


def test_sweeps_are_read(tmp_path: Path) -> None:
    steps = [SweepStep(2.0**-n, "ok", 1.0, 1.0, 4.0**-n, chosen=n == 9) for n in range(1, 12)]
    sweep = SweepReport([SweepTarget("a.py:Op", inputs=[InputSweep("x", steps=steps)])], seed=3)
    found = read_report(write(tmp_path, json.dumps(sweep.to_dict())))
    assert isinstance(found, SweepReport)
    assert found.to_dict() == sweep.to_dict()
