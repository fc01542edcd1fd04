"""One line per finding, for grep, editors and logs: ``file:line:col: CODE message``."""

from __future__ import annotations

from rich.text import Text

from gradlint.model.report import Report
from gradlint.report import wording
from gradlint.report.text import Page


def add_concise(page: Page, report: Report) -> None:
    """Add one line per finding and one per inconclusive check; nothing else."""
    for target in report.targets:
        for finding in target.findings:
            place = str(finding.location) if finding.location else target.target
            level = "" if finding.severity == "error" else f" ({finding.severity})"
            _add(page, place, finding.code, finding.severity, f"{finding.message}{level}")
        for check in target.checks:
            if check.verdict == "inconclusive":
                note = f": {check.note}" if check.note else ""
                step = f"; next: {check.help}" if check.help else ""
                words = f"inconclusive ({wording.NOT_PASSED}){note}{step}"
                place = str(target.location) if target.location else target.target
                _add(page, place, check.code, "inconclusive", words)


def _add(page: Page, place: str, code: str, level: str, message: str) -> None:
    text = Text().append(page.clean(place), "bold").append(": ")
    text.append(code, wording.STYLES.get(level, "bold")).append(" " + page.clean(message))
    page.line(text)
