"""An op that replaces what gradlint calls is found; gradlint does not fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import execute

SETTINGS = Settings(select=("GL0", "GL301", "GL401"), seed=1, timeout=60.0)

#: target → code, severity, what the message says.
CASES = {
    "meddling.py:NoModulesForward": ("GL008", "error", "replaces or removes gradlint:"),
    "meddling.py:NoModulesBackward": ("GL008", "error", "replaces or removes gradlint:"),
    "meddling.py:NoRandn": ("GL008", "error", "replaces or removes torch.randn:"),
    "meddling_import.py:Double": ("GL008", "error", "replaces or removes torch.randn:"),
    "meddling.py:OtherSoftmax": ("GL008", "warning", "torch.softmax is replaced"),
    "meddling.py:EndlessText": ("GL004", "error", "ValueError: xxx"),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, TargetReport]:
    patch = pytest.MonkeyPatch()
    patch.chdir(Path(__file__).parent)
    try:
        run = execute([*CASES, "patched.py:Double"], SETTINGS)
    finally:
        patch.undo()
    assert (run.internal, run.usage, run.exit_code) == ([], [], 1)
    return {report.target: report for report in run.report.targets}


@pytest.mark.parametrize("target", CASES)
def test_it_is_found(reports: dict[str, TargetReport], target: str) -> None:
    code, severity, words = CASES[target]
    report = reports[target]
    (finding,) = report.findings
    assert (finding.code, finding.severity) == (code, severity)
    assert words in finding.message
    assert report.verdict == "fail"
    assert len(str(finding.evidence)) < 50_000


def test_what_failed_is_told(reports: dict[str, TargetReport]) -> None:
    (finding,) = reports["meddling.py:NoRandn"].findings
    assert finding.evidence["changes"] == ["torch.randn"]
    assert finding.evidence["exception"] == "TypeError"
    assert finding.location is not None
    assert finding.location.file == "meddling.py"


def test_the_other_rules_go_on(reports: dict[str, TargetReport]) -> None:
    checks = {check.code: check.verdict for check in reports["meddling.py:OtherSoftmax"].checks}
    assert checks["GL008"] == "fail"
    assert checks["GL401"] == "pass"


def test_a_patch_that_works_is_no_fault(reports: dict[str, TargetReport]) -> None:
    report = reports["patched.py:Double"]
    assert report.findings == []
    assert report.verdict == "pass"
