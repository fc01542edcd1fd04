"""The usual outcomes of a probe."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.model.report import Finding
from gradlint.model.rule import Outcome


def skipped(reason: str) -> Outcome:
    """The rule does not apply to the subject."""
    return Outcome("skipped", note=reason)


def inconclusive(reason: str) -> Outcome:
    """The rule applies, and its measurement says neither yes nor no."""
    return Outcome("inconclusive", note=reason)


def any_defect(findings: Sequence[Finding]) -> bool:
    """Whether a finding is more than information."""
    return any(finding.severity != "info" for finding in findings)


def judged_by(findings: list[Finding], note: str = "") -> Outcome:
    """A failure where a finding is more than information, else a pass that may carry some."""
    return Outcome("fail" if any_defect(findings) else "pass", findings, note=note)
