"""An op that writes to its worker's channel ends red, with a finding, whatever it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import Run, execute

HERE = Path(__file__).parent
SETTINGS = Settings(
    select=("GL003", "GL101", "GL401"), timeout=60.0, jobs=2, seed=1, devices=("cpu",)
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="the ops find descriptors in /proc"
)

#: op → what the message says.
CASES = {
    "Bomb": "a frame",
    "BombInChild": "which is not the worker",
    "Garbage": "a frame",
    "Oversized": "a frame of 2,147,483,648 bytes was announced",
    "Truncated": "not made by the worker's own channel",
    "TruncatedAtTheEnd": "middle of a frame",
    "SendsCheck": "sent a CheckDone",
    "SendsDone": "sent a Done",
    "Replays": "not made by the worker's own channel",
    "ForgesCheck": "a result of GL003, which was not running",
    "ForgesCheckNeverBegun": "a result of GL401 (wrong gradient), which was not running",
    "ForgesUnknownRule": "GL999",
    "ForgesDone": "GL401 (wrong gradient) had run",
    "ForgesInChild": "which is not the worker",
}


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """All of them in one run, with right ops before and behind."""
    patch = pytest.MonkeyPatch()
    patch.chdir(HERE)
    mark = HERE / "pwned"
    mark.unlink(missing_ok=True)
    targets = ["hostile.py:Good", *(f"forging.py:{name}" for name in CASES), "victim.py:Victim"]
    try:
        yield execute(targets, SETTINGS)
    finally:
        patch.undo()
        mark.unlink(missing_ok=True)


@pytest.fixture
def reports(run: Run) -> dict[str, TargetReport]:
    return {report.target.rpartition(":")[2]: report for report in run.report.targets}


@pytest.mark.parametrize("name", CASES)
def test_it_is_found(reports: dict[str, TargetReport], name: str) -> None:
    report = reports[name]
    messages = [finding.message for finding in report.findings if finding.code == "GL005"]
    assert any(CASES[name] in message for message in messages), messages
    assert any(message.startswith("interfered with what its worker") for message in messages)
    assert report.verdict == "error"


@pytest.mark.parametrize("name", CASES)
def test_what_it_said_is_no_result(reports: dict[str, TargetReport], name: str) -> None:
    checks = {check.code: check.verdict for check in reports[name].checks}
    assert checks.get("GL401") != "pass"


def test_no_code_of_the_op_ran_in_the_process_that_reports(run: Run) -> None:
    assert not (HERE / "pwned").exists()
    assert (run.internal, run.usage, run.exit_code) == ([], [], 1)


@pytest.mark.parametrize("name", ["Good", "Victim"])
def test_neighbours_are_unaffected(reports: dict[str, TargetReport], name: str) -> None:
    assert (reports[name].verdict, reports[name].findings) == ("pass", [])
