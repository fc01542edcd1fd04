"""``--sanitizer``: workers run under the tool, and its reports become findings.

A program that leaves a recorded report stands in for compute-sanitizer: what is tested is what
gradlint makes of it.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sanitized import examine

from gradlint.base.errors import GradlintError
from gradlint.model.events import Begin, CheckDone, Samples
from gradlint.model.op import OpRef
from gradlint.model.report import Argument, Check, SampleReport, TargetReport
from gradlint.model.resolve import resolve_settings
from gradlint.model.settings import SANITIZERS, Settings
from gradlint.rules.catalogue import rule_names
from gradlint.running import _sanitizer
from gradlint.running import run as _run
from gradlint.running._process import Ending
from gradlint.running._sanitizer import SanitizedTask, Sanitizer
from gradlint.running._stack import Stack
from gradlint.running._task import Trouble
from gradlint.running.events import Done, Hello
from gradlint.running.run import Run, execute

HERE = Path(__file__).parent
REPORTS = HERE.parent / "rules" / "device" / "reports"
SETTINGS = Settings(timeout=30.0, seed=5, devices=("cuda",), sanitizer="memcheck")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sanitizers are run on Linux only")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path | None], Path]:
    """A function that puts a compute-sanitizer on PATH that leaves a given report, and returns
    where it writes down how it was called."""
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(_run, "on_present_devices", lambda settings, report: settings)
    called = tmp_path / "called"

    def put(report: Path | None) -> Path:
        program = tmp_path / "compute-sanitizer"
        copy = f'cp {shlex.quote(str(report))} "$log"' if report is not None else ""
        program.write_text(
            "#!/bin/sh\n"
            'while [ "${1#--}" != "$1" ]; do\n'
            f'  echo "$1" >> {shlex.quote(str(called))}\n'
            '  case "$1" in --log-file=*) log="${1#--log-file=}";; esac\n'
            "  shift\n"
            "done\n"
            f"{copy}\n"
            'UNDER_TOOL=yes exec "$@"\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return called

    return put


def check(settings: Settings = SETTINGS) -> Run:
    return execute(["planned.py:Passes"], settings, examine=examine)


def only(result: Run) -> TargetReport:
    assert (result.usage, result.internal) == ([], [])
    (report,) = result.report.targets
    return report


def test_a_report_becomes_findings(tool: Callable[[Path | None], Path]) -> None:
    called = tool(REPORTS / "memcheck.txt")
    result = check()
    report = only(result)
    assert [(f.code, f.severity, f.evidence["count"]) for f in report.findings] == [
        ("GL805", "error", 2),
        ("GL805", "error", 1),
    ]
    assert report.findings[0].message.startswith("memcheck: Invalid __global__ write of size 4")
    assert str(report.findings[1].location).startswith("planned.py:")
    ran, judged = report.checks
    assert ran.note == "yes 1 None"
    assert (judged.code, judged.verdict, judged.note) == ("GL805", "fail", "memcheck: 3 errors")
    assert (report.verdict, result.exit_code) == ("fail", 1)
    options = called.read_text().split()
    assert "--tool=memcheck" in options
    assert set(_sanitizer.OPTIONS) < set(options)


def test_selecting_the_rule_alone_runs_all_others(tool: Callable[[Path | None], Path]) -> None:
    called = tool(None)
    report = only(check(replace(SETTINGS, select=("GL805",), sanitizer="racecheck")))
    ran, judged = report.checks
    assert ran.note == "yes 1 None"
    note = "racecheck: compute-sanitizer came to no summary"
    assert (judged.verdict, judged.note) == ("inconclusive", note)
    assert "--tool=racecheck" in called.read_text()


def judged(folder: Path, text: str | None, device: str = "cuda:0") -> TargetReport:
    """What a task makes of a tool's report and of the events of a worker that passes, which are
    said to have come."""
    ref = OpRef("planned.py:Passes", "file", "planned.py", "Passes")
    task = SanitizedTask(
        ref, SETTINGS, Trouble(), examine=examine, sanitizer=Sanitizer("", "racecheck", folder)
    )
    task.job()
    if text is not None:
        (folder / "report-0.txt").write_text(text)
    argument = Argument("x", [3], "float32", device)
    for event in (
        Hello(preloaded=False),
        Samples([SampleReport("s", "given", [argument])]),
        Begin("GL401", "s"),
        CheckDone(Check("GL401", "pass", "s")),
        Done(),
    ):
        task.event(event)
    task.ended(Ending(0, None, "done", "done", Stack(), "", finished=True))
    return task.report


@pytest.mark.parametrize(
    ("text", "verdict", "note"),
    [
        ("========= ERROR SUMMARY: 0 errors\n", "pass", "racecheck: no errors"),
        ("=========\n", "inconclusive", "racecheck: compute-sanitizer came to no summary"),
        (None, "inconclusive", "racecheck: compute-sanitizer came to no summary"),
        (
            "========= Error: no kernel was looked at\n========= ERROR SUMMARY: 0 errors\n",
            "inconclusive",
            "racecheck: Error: no kernel was looked at",
        ),
    ],
)
def test_a_report_without_errors(tmp_path: Path, text: str | None, verdict: str, note: str) -> None:
    report = judged(tmp_path, text)
    assert report.findings == []
    assert (report.checks[-1].verdict, report.checks[-1].note) == (verdict, note)


def test_samples_on_the_cpu_are_not_judged(tmp_path: Path) -> None:
    report = judged(tmp_path, (REPORTS / "memcheck.txt").read_text(), "cpu")
    assert report.findings == []
    assert (report.checks[-1].verdict, report.checks[-1].note) == (
        "skipped",
        "no sample is on cuda",
    )
    (tmp_path / "cuda").mkdir()
    again = judged(tmp_path / "cuda", (REPORTS / "memcheck.txt").read_text())
    assert {finding.code for finding in again.findings} == {"GL805"}


def test_a_worker_that_hangs_under_the_tool_is_ended(
    tool: Callable[[Path | None], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(REPORTS / "memcheck.txt")
    monkeypatch.setattr(_sanitizer, "PATIENCE", 1.0)
    monkeypatch.setenv("STUB_HANGS", "1")
    report = only(check(replace(SETTINGS, timeout=5.0)))
    assert "GL006" in [finding.code for finding in report.findings]
    assert "GL805" in [finding.code for finding in report.findings]


def test_without_the_tool_the_error_says_where_it_was_sought(
    tool: Callable[[Path | None], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    result = check()
    (error,) = result.usage
    assert error.message.startswith("compute-sanitizer is not found: neither on PATH nor in ")
    assert str(tmp_path / "home" / "bin") in error.message
    assert (error.place, result.exit_code) == ("--sanitizer", 2)


def test_it_is_found_in_cuda_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "compute-sanitizer"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with _sanitizer.sanitizer(SETTINGS, present=True) as found:
        assert found is not None
        assert (found.program, found.tool) == (str(program), "memcheck")


def test_it_watches_cuda_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    settings = replace(SETTINGS, devices=("cpu",))
    result = execute(["planned.py:Passes"], settings, examine=examine)
    (error,) = result.usage
    assert (error.place, error.hint, result.exit_code) == ("--sanitizer", "add --device cuda", 2)


def test_without_a_device_nothing_is_watched() -> None:
    with _sanitizer.sanitizer(SETTINGS, present=False) as found:
        assert found is None


def test_the_setting_takes_the_four_tools() -> None:
    for name in SANITIZERS:
        assert (
            resolve_settings({"sanitizer": name}, environ={}, rules=rule_names()).sanitizer == name
        )
    with pytest.raises(GradlintError, match="not one of memcheck") as caught:
        resolve_settings({"sanitizer": "memchek"}, environ={}, rules=rule_names())
    assert "did you mean `memcheck`?" in caught.value.hint
