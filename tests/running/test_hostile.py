"""Every hostile operator is a finding with rule and phase, and its neighbours are unaffected."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.model.report import Finding, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import execute

HERE = Path(__file__).parent

SETTINGS = Settings(timeout=10.0, jobs=2, seed=1)

#: The endless ones take twice the time-out.
BRIEF = replace(SETTINGS, timeout=2.0)

#: MiB; filled in less than the time-out.
LITTLE = replace(SETTINGS, memory_mb=500)

#: Few calls, since each prints a gigabyte.
SHORT = replace(SETTINGS, select=("GL0",), timeout=120.0)

#: op → code, phase, what the message says.
FATAL = {
    "SegfaultForward": ("GL005", "forward", "SIGSEGV"),
    "SegfaultBackward": ("GL005", "backward", "SIGSEGV"),
    "Abort": ("GL005", "forward", "SIGABRT"),
    "ExitNow": ("GL005", "forward", "os._exit(0)"),
    "ExitInC": ("GL005", "forward", "exit code 0"),
    "SysExit": ("GL005", "forward", "sys.exit(0)"),
    "SysExitBackward": ("GL005", "backward", "sys.exit(0)"),
    "Interrupt": ("GL005", "forward", "KeyboardInterrupt"),
    "KillItself": ("GL007", "forward", "out of memory"),
    "CloseEverything": ("GL005", "forward", "file descriptors"),
    "EndlessPython": ("GL006", "forward", "timed out"),
    "EndlessC": ("GL006", "forward", "timed out"),
    "EndlessBackward": ("GL006", "backward", "timed out"),
    "AllocateTensors": ("GL007", "forward", "out of memory"),
    "AllocateObjects": ("GL007", "forward", "out of memory"),
    "SeekingExit": ("GL005", "forward", "sys.exit(0)"),
    "SeekingSegfault": ("GL005", "forward", "SIGSEGV"),
    "SeekingAllocation": ("GL007", "forward", "out of memory"),
}

#: op → code and what the message says; the worker lives on.
RAISING = {
    "Recursion": ("GL003", "RecursionError"),
    "BadText": ("GL003", "Unspeakable"),
    "Surrogates": ("GL003", "ValueError"),
}

#: Right ops that misbehave: op → what GL008 says of their forward; all else passes.
MISBEHAVING = {
    "Flood": "MB printed",
    "LeaveThreads": "thread left running",
    "Fork": "os.fork is called",
    "ForkAndStay": "a process left running",
    "CloseStdout": "sys.stdout was closed",
    "CloseDescriptors": "was closed",
    "ChangeState": "default dtype",
}


@pytest.fixture(scope="module")
def reports() -> dict[str, TargetReport]:
    """All of them in one run, with a victim between each two."""
    patch = pytest.MonkeyPatch()
    patch.chdir(HERE)
    try:
        greedy = [name for name in FATAL if "Alloc" in name]
        endless = [name for name in FATAL if "Endless" in name]
        apart = {*greedy, *endless, "Flood"}
        others = [name for name in (*FATAL, *RAISING, *MISBEHAVING, "Good") if name not in apart]
        runs = [
            execute([f"hostile.py:{name}" for name in greedy], LITTLE),
            execute([f"hostile.py:{name}" for name in endless], BRIEF),
            execute([f"hostile.py:{name}" for name in others] + ["victim.py:Victim"], SETTINGS),
        ]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        runs.append(execute(["hostile.py:Flood"], SHORT))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    finally:
        patch.undo()
    assert [(run.internal, run.usage) for run in runs] == [([], [])] * 4
    assert grown < 64 * 1024  # KiB: what is printed is not kept
    reports = [report for run in runs for report in run.report.targets]
    return {report.target.rpartition(":")[2]: report for report in reports}


def first(report: TargetReport, code: str) -> Finding:
    found = [finding for finding in report.findings if finding.code == code]
    assert found, [(finding.code, finding.message) for finding in report.findings]
    return found[0]


@pytest.mark.parametrize("name", FATAL)
def test_fatal(reports: dict[str, TargetReport], name: str) -> None:
    code, phase, words = FATAL[name]
    finding = first(reports[name], code)
    assert words in finding.message
    assert phase in finding.message
    assert finding.evidence["phase"] == phase
    assert finding.location is not None
    assert finding.location.file == "hostile.py"
    assert reports[name].verdict == "error"


@pytest.mark.parametrize(
    "name",
    [
        "SegfaultForward",
        "SegfaultBackward",
        "ExitNow",
        "EndlessPython",
        "EndlessC",
        "EndlessBackward",
    ],
)
def test_the_line_is_shown(reports: dict[str, TargetReport], name: str) -> None:
    code, phase, _ = FATAL[name]
    finding = first(reports[name], code)
    assert finding.excerpt is not None
    assert finding.location is not None
    text = (HERE / "hostile.py").read_text().splitlines()
    start = text.index(f"class {name}(_Double):")
    assert start < finding.location.line - 1 < start + 14
    assert f"hostile.py:{finding.location.line} in {phase}" in finding.evidence["traceback"]


def test_what_was_printed_last_is_shown(reports: dict[str, TargetReport]) -> None:
    finding = first(reports["SegfaultForward"], "GL005")
    assert finding.evidence["output_tail"] == ["a last word"]


@pytest.mark.parametrize("name", RAISING)
def test_raising(reports: dict[str, TargetReport], name: str) -> None:
    code, words = RAISING[name]
    finding = first(reports[name], code)
    assert words in finding.message
    assert reports[name].verdict == "fail"


@pytest.mark.parametrize("name", MISBEHAVING)
def test_misbehaving(reports: dict[str, TargetReport], name: str) -> None:
    report = reports[name]
    finding, *others = report.findings
    assert finding.code == "GL008"
    assert MISBEHAVING[name] in finding.message
    # What can't print can't be compiled.
    assert {other.code for other in others} <= {"GL903"}
    assert finding.evidence["phase"] == "forward"
    assert {check.verdict for check in report.checks if check.code != "GL008"} <= {
        "pass",
        "skipped",
    }


@pytest.mark.parametrize("name", ["Good", "Victim"])
def test_neighbours_are_unaffected(reports: dict[str, TargetReport], name: str) -> None:
    assert [finding.message for finding in reports[name].findings] == []
    assert reports[name].verdict == "pass"


def test_everything_can_be_printed(reports: dict[str, TargetReport]) -> None:
    from gradlint.model.report import Report
    from gradlint.report.render import render

    report = Report(targets=list(reports.values()))
    for format in ("full", "concise", "json"):
        text = render(report, format, width=80, verbose=1)
        text.encode("utf-8")
        assert "\x1b" not in text
