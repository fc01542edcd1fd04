"""From the events of one target to its report."""

from __future__ import annotations

from typing import Any

from gradlint.checking.finding_causality import grouped
from gradlint.model.report import Check, Finding, TargetReport, Verdict

#: Findings after which a target could not be judged.
UNJUDGED = ("GL001", "GL002", "GL005", "GL006", "GL007")


class Collector:
    """Builds a :class:`TargetReport` from events, over as many workers as it takes.

    Args:
        report: filled in place.
    """

    def __init__(self, report: TargetReport) -> None:
        self.report = report
        self.done: set[tuple[str, str]] = set()
        self.current: tuple[str, str] | None = None
        self.sampled = False

    def take(self, kind: str, payload: Any) -> None:
        """Add one event of a worker or of ``examine``; unknown kinds are ignored."""
        getattr(self, f"_on_{kind}", lambda payload: None)(payload)

    def give_up_current(self) -> None:
        """Never run again what was running when the worker ended."""
        if self.current is not None:
            self.done.add(self.current)
            self.current = None

    def op_raised(self, phase: str, kind: str, text: str) -> None:
        """The op raised in a later call, where what was running could not go on."""
        told = f"{kind}: {text.splitlines()[0]}" if text else kind
        note = f"{phase} raised {told} in a later call"
        if self.current is None:
            self._on_note(note)
        else:
            code, sample = self.current
            self.report.checks.append(Check(code, "inconclusive", sample, note=note))

    def finish(self) -> TargetReport:
        """The report, with its verdict, and every finding's consequences under it."""
        self.report.findings = grouped(self.report.findings)
        self.report.verdict = verdict(self.report)
        return self.report

    # -- events ---------------------------------------------------------------------------------

    def _on_loaded(self, payload: dict[str, Any]) -> None:
        self.report.kind = payload["kind"]
        self.report.location = payload["location"] or self.report.location

    def _on_samples(self, payload: list[Any]) -> None:
        self.sampled = True
        self.report.samples = list(payload)

    def _on_begin(self, payload: Any) -> None:
        code, sample = payload
        self.give_up_current()
        self.current = (code, sample)

    def _on_check(self, payload: Check) -> None:
        self.report.checks.append(payload)

    def _on_finding(self, payload: Finding) -> None:
        self.report.findings.append(payload)

    def _on_anatomy(self, payload: list[Any]) -> None:
        self.report.anatomy = list(payload)

    def _on_predicted(self, payload: list[Any]) -> None:
        again = {item.sample for item in payload}
        kept = [item for item in self.report.predicted if item.sample not in again]
        self.report.predicted = kept + list(payload)

    def _on_gradcheck(self, payload: Any) -> None:
        self.report.gradcheck = payload

    def _on_gradgradcheck(self, payload: Any) -> None:
        self.report.gradgradcheck = payload

    def _on_skip(self, payload: Any) -> None:
        code, reason = payload
        skipped = Check(code, "skipped", note=reason)
        if skipped not in self.report.checks:
            self.report.checks.append(skipped)

    def _on_note(self, payload: str) -> None:
        if payload not in self.report.notes:
            self.report.notes.append(payload)

    def _on_done(self, payload: Any) -> None:
        self.give_up_current()


def verdict(report: TargetReport) -> Verdict:
    """The verdict of a target: the worst of what its findings and checks say."""
    if any(finding.code in UNJUDGED for finding in report.findings):
        return "error"
    if any(finding.severity in ("error", "warning") for finding in report.findings):
        return "fail"
    verdicts = {check.verdict for check in report.checks}
    for candidate in ("fail", "inconclusive", "pass"):
        if candidate in verdicts:
            return candidate
    return "skipped"
