"""Verified changes of the source: with a finding, and as the output of ``gradlint fix``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from gradlint.model.report import Finding, Fix
from gradlint.report import wording
from gradlint.report.text import Page

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True)
class FixEntry:
    """What came of one target.

    Args:
        target: as the user would name it.
        findings: that were to be mended.
        fix: the change; None where there is none, and ``why`` says why.
        written: whether it was written to the file.
    """

    target: str
    findings: Sequence[Finding]
    fix: Fix | None
    why: str = ""
    written: bool = False


def verified(fix: Fix) -> str:
    """How the change was verified, in words."""
    checks = wording.plural(fix.checks, "check")
    return f"{checks} {'passes' if fix.checks == 1 else 'pass'} with this change"


def fix_lines(fix: Fix) -> list[str]:
    """What the change is, how it was verified, and what else must be known; the diff apart."""
    titles = [f"{title[:1].upper()}{title[1:]}." for title in fix.titles]
    notes = [f"{note[:1].upper()}{note[1:]}." for note in fix.notes]
    return [*titles, *notes, f"Verified: {verified(fix)}."]


def add_diff(page: Page, fix: Fix, *, indent: int = 0) -> None:
    """Add the diff, line by line, in colours where there are any."""
    for line in fix.diff.splitlines():
        page.line(Text(" " * indent + page.clean(line), _STYLES.get(line[:1], "")))


def add_fixes(page: Page, entries: Sequence[FixEntry], *, asks: bool = False) -> None:
    """Add what came of every target that needed a change, then a summary.

    Args:
        asks: whether they are to be written, or this is asked next.
    """
    for entry in entries:
        page.blank()
        codes = ", ".join(dict.fromkeys(finding.code for finding in entry.findings))
        head = Text().append(page.clean(entry.target), "bold")
        page.paragraph(head.append(f"  {codes}", wording.STYLES["error"]), hanging=4)
        for finding in entry.findings:
            page.paragraph(f"{finding.code}  {finding.message}", indent=2, hanging=7)
        if entry.fix is None:
            page.row("no fix", f"{entry.why}; the finding's help says what to look at")
            continue
        page.row("fix", fix_lines(entry.fix))
        page.blank()
        add_diff(page, entry.fix)
    page.blank()
    page.paragraph(_summary(entries, asks=asks))


def _summary(entries: Sequence[FixEntry], *, asks: bool) -> str:
    if not entries:
        return "Nothing to fix."
    found = sum(entry.fix is not None for entry in entries)
    failing = wording.plural(len(entries), "failing operator")
    words = f"{found} of {failing} {'has' if found == 1 else 'have'} a verified fix"
    written = sum(entry.written for entry in entries)
    if written:
        return f"{words}; {written} written."
    return f"{words}." + (" Nothing was written: --write does so." if found and not asks else "")
