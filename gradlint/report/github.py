"""Annotations of GitHub Actions, as workflow commands, and the summary of a step.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions. GitHub shows ten
errors, ten warnings and ten notices of a step, and no more than a mebibyte of summary.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gradlint.base.terminal import clean, disarmed, lines_of
from gradlint.model.report import Location, Report, Severity, TargetReport, failing
from gradlint.report import wording
from gradlint.report._brief import brief, title, unchecked_text
from gradlint.report._markdown import markdown_parts
from gradlint.report._paths import from_root
from gradlint.report._ranked import place_of, ranked
from gradlint.report._summary import outcome

#: Annotations of each level that one step shows.
MOST = 10

#: Bytes of the summary of one step.
SUMMARY_BYTES = 2**20

#: Bytes kept free for the sentence that says what was left out.
_LAST = 500

_REST = b"\n\nThe rest is left out: GitHub shows no more. The JSON report has all of it.\n"

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


@dataclass(frozen=True)
class _Annotation:
    severity: Severity
    place: Location | None
    title: str
    lines: list[str]


def github_parts(report: Report) -> Iterator[str]:
    """One workflow command a line, worst first; then how many were left out, and the outcome."""
    left: Counter[Severity] = Counter()
    shown: Counter[Severity] = Counter()
    for annotation in _annotations(report):
        if shown[annotation.severity] == MOST:
            left[annotation.severity] += 1
            continue
        shown[annotation.severity] += 1
        yield _command(annotation)
    if left:
        words = wording.severities(left)
        yield f"GitHub shows {MOST} annotations of each level a step; {words} left out here.\n"
    yield disarmed(clean(outcome(report))) + "\n"


def _annotations(report: Report) -> Iterator[_Annotation]:
    broken = (
        _Annotation("error", None, "gradlint", lines_of(error.text)) for error in report.errors
    )
    findings = (
        _Annotation(
            item.finding.severity,
            item.place,
            title(item.finding),
            [*brief(item.finding, item.target), f"operator: {clean(item.target.target)}"],
        )
        for item in ranked(report)
        if not item.finding.baselined
    )
    # What fails the run without a finding is said, too.
    unsaid = (
        _Annotation("error", place_of(target), f"{target.verdict} operator", _why(target))
        for target in report.targets
        if report.fails(target) and not any(failing(f, report.fail_on) for f in target.findings)
    )
    unchecked = (
        _Annotation("error", item.location, "unchecked operator", [unchecked_text(item)])
        for item in report.unchecked
    )
    yield from itertools.chain(broken, unchecked, unsaid, findings)


def _why(target: TargetReport) -> list[str]:
    lines = [f"{clean(target.target)}: {target.verdict}"]
    if target.uncovered:
        lines = [f"{clean(target.target)} passes with code that never ran"]
        lines += lines_of(f"not tried: {wording.not_tried(target)}")
    for check in target.checks:
        if check.verdict == "inconclusive":
            lines += lines_of(f"{check.code}: {check.note}" if check.note else check.code)
    return lines + [line for note in target.notes for line in lines_of(note)]


def _command(annotation: _Annotation) -> str:
    place = annotation.place
    properties: dict[str, str | int] = {}
    if place is not None:
        properties["file"] = from_root(place.file, "GITHUB_WORKSPACE")
        properties["line"] = max(1, place.line)
        one_line = place.end_line in (None, place.line)
        if place.end_line is not None:
            properties["endLine"] = max(1, place.end_line)
        if one_line:  # GitHub takes columns of no others
            properties["col"] = max(1, place.column)
            if place.end_column is not None:
                properties["endColumn"] = max(1, place.end_column)
    properties["title"] = annotation.title
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[annotation.severity]} {given}::{_data(annotation.lines)}\n"


def _data(lines: list[str]) -> str:
    """The text of a command: GitHub decodes ``%25``, ``%0D`` and ``%0A``."""
    return "%0A".join(disarmed(line).replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    """A value of a command, in which a colon and a comma are syntax, too."""
    shown = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return disarmed(clean(shown.replace(":", "%3A").replace(",", "%2C")))


def step_summary(report: Report, room: int = SUMMARY_BYTES) -> bytes:
    """``report`` in Markdown for the page of a step, at most ``room`` bytes.

    Args:
        report: the report.
        room: what is left of :data:`SUMMARY_BYTES`.
    """
    written: list[bytes] = []
    used = 0
    for part in markdown_parts(report):
        encoded = part.encode("utf-8", "backslashreplace")
        if used + len(encoded) > room - _LAST:
            told = (
                "\n\nThe rest is left out: GitHub shows no more. The JSON report has all of it.\n"
            )
            return b"".join(written) + (told.encode() if room >= _LAST else b"")
        written.append(encoded)
        used += len(encoded)
    return b"".join(written)
