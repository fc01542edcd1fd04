"""Results in a file: what is read back is what was kept, whatever the disk and others do, and a
report made of it is the one that memory would have held."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradlint.gate.baseline import Baseline
from gradlint.model.fingerprint import identities
from gradlint.model.report import Check, Finding, Location, Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.report.render import FORMATS, render
from gradlint.rules.catalogue import CATALOGUE
from gradlint.running import spool as _spool
from gradlint.running.run import execute
from gradlint.running.spool import Spoiled, Spool, SpooledReports


def report(number: int, **changes: Any) -> TargetReport:
    severity = ("error", "warning", "info")[number % 3]
    finding = Finding("GL401", "n", severity, f"wrong {number}", evidence={"worst_z": math.inf})  # type: ignore[arg-type]
    made = TargetReport(
        f"ops.py:Op{number}",
        "function",
        "fail" if number % 3 < 2 else "pass",
        checks=[Check("GL401", "pass", "s", 1e-9 * (number + 1))],
        findings=[finding, replace(finding, code="GL602", follows="GL401")],
        location=Location("ops.py", number + 1),
        position=[number],
    )
    return replace(made, **changes)


def spooled(reports: list[TargetReport]) -> SpooledReports:
    spool = Spool()
    return SpooledReports(spool, map(spool.keep, reports))


def held(reports: SpooledReports) -> list[bool]:
    """Which of them are in memory."""
    return [place.held is not None for place in reports._places]


def test_it_reads_back_what_was_kept() -> None:
    made = [report(number) for number in range(5)]
    kept = spooled(made)
    assert held(kept) == [False] * 5
    assert len(kept) == 5
    assert [*kept] == made == [*kept]
    assert kept[-1] == made[-1]
    assert [*kept[1:3]] == made[1:3]


def test_it_changes_as_a_list_does() -> None:
    made = [report(number) for number in range(4)]
    kept = spooled(made)
    changed = kept[2]
    changed.notes.append("more")
    assert kept[2].notes == []  # until it is put back
    kept[2] = changed
    assert kept[2].notes == ["more"]
    del kept[0]
    kept.insert(1, report(9))
    kept[2:3] = [report(7), report(8)]
    kept += [report(6)]
    names = [target.target for target in kept]
    assert names == [f"ops.py:Op{number}" for number in (1, 9, 7, 8, 3, 6)]


@pytest.mark.parametrize(
    "evidence", [{"count": 2**70}, {"text": "half \ud83d"}, {"thing": object()}]
)
def test_what_can_not_be_written_stays_in_memory(evidence: dict[str, Any]) -> None:
    odd = report(0, findings=[Finding("GL401", "n", "error", "m", evidence=evidence)])
    kept = spooled([report(1), odd, report(2)])
    assert held(kept) == [False, True, False]
    assert kept[1] is odd
    assert [*kept] == [report(1), odd, report(2)]


def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device fails every write as a disk does that has no room."""
    full = lambda **_: open("/dev/full", "w+b", buffering=0)  # noqa: E731, SIM115
    monkeypatch.setattr(_spool.tempfile, "TemporaryFile", full)
    kept = spooled([report(1), report(2)])
    assert held(kept) == [True, True]
    assert [*kept] == [report(1), report(2)]


def test_a_disk_that_fills_up_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room ends in the middle of the third report."""
    usual, room = os.pwrite, 2 * len(_spool._encoder.encode(report(0))) + 100

    def pwrite(file: int, data: Any, offset: int) -> int:
        left = room - offset
        if left <= 0:
            raise OSError(28, "No space left on device")
        return usual(file, data[:left], offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    made = [report(number % 3) for number in (0, 3, 6, 9)]
    kept = spooled(made)
    assert held(kept) == [False, False, True, True]
    assert [*kept] == made


def test_what_another_program_changes_is_not_believed() -> None:
    spool = Spool()
    place = spool.keep(report(0))
    file = spool._file
    assert file is not None
    at = os.pread(file.fileno(), place.length, 0).index(b"fail")
    os.pwrite(file.fileno(), b"pass", at)
    with pytest.raises(Spoiled, match="changed by another program"):
        spool.read(place)
    os.ftruncate(file.fileno(), 10)
    with pytest.raises(Spoiled):
        spool.read(place)


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_spool.tempfile, "tempdir", str(tmp_path))
    spool = Spool()
    place = spool.keep(report(0))
    assert [*tmp_path.iterdir()] == []
    assert spool.read(place) == report(0)


# -- reports made of it ----------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_is_the_same(format: str) -> None:
    """Not sorted, with roots and consequences of every severity, one that can't be loaded for the
    reason of another, and passes."""
    absent = Finding("GL001", "n", "error", "no module", evidence={"original": "absent"})
    broken = [
        TargetReport(f"x.py:{name}", verdict="error", findings=[absent], location=Location("x", 1))
        for name in "abc"
    ]
    made = [report(2), broken[0], report(0), broken[1], report(1), *map(report, range(3, 9))]
    made += [broken[2], TargetReport("late.py:Op", notes=["interrupted"])]
    texts = [
        render(Report(targets, seed=1), format, width=100, rules=CATALOGUE, verbose=verbose)
        for verbose in (0, 1)
        for targets in (made, spooled(made))
    ]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]


def test_counts_are_the_same() -> None:
    made = [report(number) for number in range(7)]
    ours, theirs = Report(spooled(made)), Report(made)
    assert ours.summary() == theirs.summary()
    assert ours.brief == theirs.brief
    assert repr(ours) == repr(theirs)
    assert ours.exit_code == theirs.exit_code == 1
    assert ours.findings == theirs.findings


def test_a_baseline_marks_what_is_kept() -> None:
    made = [report(number) for number in range(4)]
    known = identities(made[1])[0]
    gone = dataclasses.replace(known, input="another")
    texts = []
    for targets in (spooled(made), made):
        whole = Report(targets)
        use = Baseline("base.json", {known: "", gone: ""}).use(whole, Settings())
        assert [finding.baselined for finding in whole.findings] == [n == 2 for n in range(8)]
        texts.append((use, render(whole, "json")))
    assert texts[0] == texts[1]


OPERATORS = """
import torch

class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2.0
    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)

class Wrong(Right):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3.0

class Accepting(Right):  # gradlint: ignore[GL403]
    @staticmethod
    def forward(ctx, x):
        return x * 4.0
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 4.0
"""

BRIEF = Settings(select=("GL0", "GL1", "GL401"), seed=4, jobs=2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ops.py").write_text(OPERATORS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: What a time decides: the plan times a call once more where the first was interrupted.
OF_TIME = ("duration_s", "forward_calls", "backward_calls")


def without_times(report: Report) -> Any:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in OF_TIME}
        return [plain(item) for item in value] if isinstance(value, list) else value

    made = plain(report.to_dict())
    for target in made["targets"]:
        if target["confirmation"]:
            del target["confirmation"]["resolution"]  # its directions are secret
    return made


def test_a_spool_that_is_gone_has_closed_its_file() -> None:
    spool = Spool()
    spool.keep(TargetReport("a.py:A", "function", "pass"))
    file = spool._file
    assert file is not None
    assert not file.closed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del spool
    assert file.closed


def test_a_run_is_the_same(folder: Path) -> None:
    """Also what is added once all of it is known: here, that a comment gives no reason."""
    kept = execute(["ops.py"], BRIEF, spool=Spool()).report
    assert isinstance(kept.targets, SpooledReports)
    assert held(kept.targets) == [False] * 3
    assert [target.verdict for target in kept.targets] == ["pass", "fail", "pass"]
    assert "GL011" in {finding.code for finding in kept.targets[2].findings}
    assert without_times(kept) == without_times(execute(["ops.py"], BRIEF).report)


def test_a_run_that_ends_early_is_the_same(folder: Path) -> None:
    settings = replace(BRIEF, jobs=1)
    runs = [
        execute(["ops.py"], settings, judge=lambda report: report.verdict == "fail", spool=spool)
        for spool in (Spool(), None)
    ]
    for run in runs:
        assert run.report.stopped
        assert [target.verdict for target in run.report.targets] == ["pass", "fail", "skipped"]
    assert without_times(runs[0].report) == without_times(runs[1].report)


def test_what_was_known_when_it_was_interrupted(folder: Path) -> None:
    def interrupt(done: int, total: int, report: TargetReport) -> None:
        if done == 2:
            raise KeyboardInterrupt

    run = execute(["ops.py"], replace(BRIEF, jobs=1), on_progress=interrupt, spool=Spool())
    assert run.exit_code == 130
    assert [target.verdict for target in run.report.targets] == ["pass", "fail", "skipped"]
    assert run.report.targets[2].notes == ["interrupted"]
    assert run.report.targets[1].findings[0].code == "GL401"


def test_the_command_keeps_them_there(folder: Path, gradlint: Callable[..., Any]) -> None:
    """Every report of one run is whole, and its baseline and cache work as before."""
    words = ("check", "ops.py", "--select", "GL1,GL401", "--seed", "4")
    first = gradlint(folder, *words, "--report", "json=a.json", "--cache", "kept")
    again = gradlint(
        folder, *words, "--report", "json=a2.json", "--report", "jsonl=b.jsonl", "--cache", "kept"
    )
    assert first.returncode == again.returncode == 1, first
    whole = json.loads((folder / "a2.json").read_text())
    assert whole["cache"]["read"] == 3
    assert [target["cached"] for target in whole["targets"]] == [True] * 3
    lines = [json.loads(line) for line in (folder / "b.jsonl").read_text().splitlines()]
    assert [line["target"] for line in lines[1:-1]] == [t["target"] for t in whole["targets"]]
    written = gradlint(
        folder,
        "baseline",
        "write",
        "gradlint-baseline.json",
        "ops.py",
        "--select",
        "GL1,GL401",
        "--seed",
        "4",
    )
    assert written.returncode == 0, written
    accepted = gradlint(
        folder, *words, "--baseline", "gradlint-baseline.json", "--report", "json=c.json"
    )
    assert accepted.returncode == 0, accepted
    findings = [
        f for t in json.loads((folder / "c.json").read_text())["targets"] for f in t["findings"]
    ]
    assert [(finding["code"], finding["baselined"]) for finding in findings] == [("GL401", True)]
