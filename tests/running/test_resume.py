"""What was found before a crash stays, and the rest goes on in a fresh worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stub_examine import examine

from gradlint.base.errors import GradlintError
from gradlint.model.report import MEMORY_RAN_OUT, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import Run, execute, run

HERE = Path(__file__).parent
SETTINGS = Settings(timeout=30.0, jobs=2, seed=5)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(HERE)
    return


def check(*names: str, settings: Settings = SETTINGS) -> Run:
    targets = [name if ":" in name else f"planned.py:{name}" for name in names]
    return execute(targets, settings, examine=examine)


def only(result: Run) -> TargetReport:
    (report,) = result.report.targets
    return report


def test_a_quiet_target_passes() -> None:
    result = check("Passes")
    assert only(result).verdict == "pass"
    assert [item.code for item in only(result).checks] == ["GL101", "GL301", "GL401"]
    assert (result.exit_code, result.report.seed) == (0, 5)
    assert result.report.environment["torch"] not in ("", "unknown")


def test_findings_before_a_crash_stay_and_the_rest_is_run() -> None:
    report = only(check("CrashesOnce"))
    assert [item.code for item in report.findings] == ["GL101", "GL005", "GL401"]
    assert [item.code for item in report.checks] == ["GL101", "GL401"]
    crash = report.findings[1]
    assert crash.evidence["signal"] == "SIGSEGV"
    assert (crash.evidence["phase"], crash.evidence["rule"]) == ("backward", "GL301")
    assert crash.message == "process crashed in backward, during GL301 (nan in forward): SIGSEGV"
    assert crash.sample == report.samples[0].label
    assert "--select GL301" in crash.reproduce
    assert "--seed 5" in crash.reproduce
    assert report.verdict == "error"


def test_three_crashes_end_a_target_and_equal_ones_are_one_finding() -> None:
    result = check("CrashesAlways", "Passes")
    crashed, passed = result.report.targets
    (finding,) = crashed.findings
    assert finding.evidence["rule"] == "GL101, GL301, GL401"
    assert crashed.checks
    assert all(item.verdict == "skipped" and "3 workers" in item.note for item in crashed.checks)
    assert not {item.code for item in crashed.checks} & {"GL101", "GL301", "GL401"}
    assert passed.verdict == "pass"
    assert result.exit_code == 1


def test_a_hang_is_ended_and_located() -> None:
    report = only(check("Hangs", settings=replace(SETTINGS, timeout=2.0)))
    assert [item.code for item in report.findings] == ["GL101", "GL006"]
    hang = report.findings[1]
    assert hang.location is not None
    assert hang.location.file == "stub_examine.py"
    assert hang.excerpt is not None
    assert any("while True" in text for _, text in hang.excerpt.lines)
    assert [item.code for item in report.checks] == ["GL101", "GL401"]


def test_want_of_memory_in_a_rule_is_no_internal_error() -> None:
    result = check("Memory")
    assert [item.code for item in only(result).findings] == ["GL007"]
    assert result.exit_code == 1


@pytest.mark.parametrize("op", ["MemoryInALaterRule", "RefusedInALaterRule"])
def test_want_of_memory_beside_an_op_that_ran_is_no_fault_of_it(op: str) -> None:
    result = check(op)
    report = only(result)
    assert report.findings == []
    assert {item.code: item.verdict for item in report.checks} == {
        "GL101": "pass",
        "GL301": "inconclusive",
        "GL401": "pass",
    }
    assert [item.note for item in report.checks if item.code == "GL301"] == [MEMORY_RAN_OUT]
    assert result.internal == []
    assert result.exit_code == 0


def test_a_bug_of_gradlint_is_exit_3_and_the_rest_goes_on() -> None:
    result = check("Bug", "Passes")
    bug, passed = result.report.targets
    assert [item.code for item in bug.checks] == ["GL101", "GL401"]
    assert "ZeroDivisionError" in bug.notes[0]
    assert "GL301" in bug.notes[0]
    assert passed.verdict == "pass"
    assert result.exit_code == 3
    what, _, traceback = result.internal[0].partition("\n")
    assert what.endswith("Bug: ZeroDivisionError: a bug of gradlint's own")
    assert traceback.startswith("Traceback")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        _raise_of(result)


def _raise_of(result: Run) -> None:
    raise RuntimeError(result.internal[0])


def test_a_wrong_target_is_exit_2_and_the_others_finish() -> None:
    result = check("Pases", "Passes")
    assert result.exit_code == 2
    assert "Passes" in str(result.usage[0])
    assert [item.verdict for item in result.report.targets] == ["pass"]
    with pytest.raises(GradlintError, match="Pases"):
        run(["planned.py:Pases"], SETTINGS)


def test_a_target_named_twice_is_checked_once() -> None:
    assert len(check("Passes", "Passes").report.targets) == 1


def test_progress_is_told() -> None:
    seen: list[tuple[int, int, str]] = []
    execute(
        ["planned.py:Passes", "planned.py:CrashesOnce"],
        SETTINGS,
        examine=examine,
        on_progress=lambda done, total, report: seen.append((done, total, report.verdict)),
    )
    assert [item[:2] for item in seen] == [(1, 2), (2, 2)]
    assert {item[2] for item in seen} == {"pass", "error"}


def test_a_module_that_raises_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(
        "import torch\n\n\nclass Op(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x\n\n\n1 / 0\n"
    )
    report = only(check("broken.py:Op"))
    (finding,) = report.findings
    assert (finding.code, report.verdict) == ("GL001", "error")
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("broken.py", 10)
    assert "ZeroDivisionError" in finding.message


def test_the_process_that_reports_has_no_torch_and_runs_nothing_of_the_users() -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from gradlint.model.settings import Settings\n"
        "from gradlint.running.run import execute\n"
        "from stub_examine import examine\n"
        "run = execute(['planned.py:Passes'], Settings(), examine=examine)\n"
        "print(run.report.targets[0].verdict, 'torch' in sys.modules, 'planned' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE, check=True
    )
    assert done.stdout.split() == ["pass", "False", "False"]
