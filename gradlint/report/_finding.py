"""One finding in full: headline, source with carets, evidence, cause, help, reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from gradlint.model.report import Finding, TargetReport
from gradlint.report import wording
from gradlint.report._excerpt import excerpt_lines
from gradlint.report.table import table
from gradlint.report.text import Page, lines_of

#: How many elements and lines of output are shown without ``-v``; the JSON report holds all.
ELEMENTS = 8
TRACEBACK_LINES = 12
OUTPUT_LINES = 10
ORIGINAL_LINES = 30

#: Longest label that others are aligned with: that of the slopes from above and below.
WIDEST_LABEL = 16

_SPECIAL = (*wording.MEASUREMENT, "elements", "original", "traceback", "output_tail")
_SIGNED = ("returned", "measured", "expected", "analytic", "numeric", "correct", "float64")


def headline(finding: Finding, target: str, ascii: bool = False) -> list[tuple[str, str]]:
    """Place, code, severity unless it is an error, and the fault; pieces of (text, style)."""
    style = wording.STYLES.get(finding.severity, "bold")
    place = str(finding.location) if finding.location else target
    parts = [(place, "bold"), ("  ", ""), (finding.code, style)]
    if finding.severity != "error":
        parts += [(" ", ""), (finding.severity, style)]
    return [*parts, ("  ", ""), (finding.message, "")]


def add_finding(page: Page, finding: Finding, target: TargetReport) -> None:
    """Add ``finding``. Unless the page is verbose, an info gets its headline and help only, and a
    consequence one line."""
    if finding.follows is not None and not page.verbose:
        _consequence(page, finding)
        return
    text = Text()
    for part, style in headline(finding, target.target):
        text.append(part if part.isspace() else page.clean(part), style)
    page.paragraph(text, hanging=4)
    brief = finding.severity == "info" and not page.verbose
    if not brief:
        _source(page, finding)
    rows = _Rows(page, finding, wide=not brief and target.gradgradcheck is not None)
    if finding.cause or finding.cause_text:
        rows.add("cause", finding.cause_text or str(finding.cause))
    if not brief:
        if wording.where(finding):
            rows.add("where", wording.where(finding))
        _evidence(rows, finding)
        _torch(rows, finding, target)
        if finding.sample and len(target.samples) > 1:
            rows.add("sample", finding.sample)
    if finding.help:
        rows.add("help", lines_of(finding.help, page.ascii))
    if finding.reproduce and not brief:
        rows.add("reproduce", finding.reproduce, whole=True)


def _consequence(page: Page, finding: Finding) -> None:
    """Add one line under the finding that it follows from."""
    level = "" if finding.severity == "error" else f" {finding.severity}"
    page.row("also", f"{finding.code}{level}  {page.clean(finding.message)}")


class _Rows:
    """Labelled rows with one width of labels for the whole finding."""

    def __init__(self, page: Page, finding: Finding, *, wide: bool) -> None:
        self.page = page
        longest = max((len(key) for key in finding.evidence if key not in _SPECIAL), default=0)
        self.column = min(WIDEST_LABEL, max(9, longest))
        if wide and finding.code.startswith("GL5"):
            self.column = max(self.column, len("gradgradcheck"))

    def add(self, label: str, value: str | Sequence[str], *, whole: bool = False) -> None:
        style = "bold green" if label == "help" else "dim"
        self.page.row(label, value, column=self.column, style=style, whole=whole)

    @property
    def indent(self) -> int:
        return self.page.value_indent(self.column)


def _source(page: Page, finding: Finding) -> None:
    excerpt, location = finding.excerpt, finding.location
    shown: set[int] = set()
    if excerpt is not None and excerpt.lines:
        page.blank()
        for line in excerpt_lines(
            excerpt, location, finding.related, width=page.width, ascii=page.ascii
        ):
            page.line(line)
        page.blank()
        shown = {number for number, _ in excerpt.lines}
    elif excerpt is not None and excerpt.label:
        page.paragraph(excerpt.label, indent=4)
    for place in finding.related:
        inside = location is not None and place.file == location.file and place.line in shown
        if not inside:
            page.row("see also", str(place), whole=True)


def _evidence(rows: _Rows, finding: Finding) -> None:
    evidence, page = finding.evidence, rows.page
    limit = None if page.verbose else 1
    elements = evidence.get("elements") or []
    measured = wording.measurement(evidence, verbose=page.verbose > 0)
    if measured or elements:
        rows.add("measured", measured or ["worst elements"])
        _elements(rows, elements)
    for key, value in evidence.items():
        if key in _SPECIAL or value is None or value in ("", [], {}):
            continue
        label = key.replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            rows.add(label, [])
            _records(rows, value)
        elif isinstance(value, list) and any(isinstance(item, str) for item in value):
            rows.add(label, [line for item in value for line in lines_of(str(item), page.ascii)])
        else:
            rows.add(label, lines_of(wording.plain(value), page.ascii))
    original = evidence.get("original")
    if original:
        lines = lines_of(str(original), page.ascii)
        rows.add("original", _cut(lines, limit and ORIGINAL_LINES, page, first=True), whole=True)
    for key, label, count in (
        ("traceback", "traceback", TRACEBACK_LINES),
        ("output_tail", "printed", OUTPUT_LINES),
    ):
        value = evidence.get(key)
        if value:
            parts = [value] if isinstance(value, str) else value
            lines = [line for part in parts for line in lines_of(str(part), page.ascii)]
            rows.add(label, _cut(lines, limit and count, page, first=False), whole=True)


def _elements(rows: _Rows, elements: Any) -> None:
    if not isinstance(elements, list) or not all(isinstance(item, dict) for item in elements):
        if elements:
            rows.page.paragraph(wording.plain(elements), indent=rows.indent)
        return
    shown = elements if rows.page.verbose else elements[:ELEMENTS]
    _records(rows, shown)
    if len(shown) < len(elements):
        more = f"and {len(elements) - len(shown)} more (-v shows them)"
        rows.page.paragraph(more, indent=rows.indent)


def _records(rows: _Rows, records: Sequence[dict[str, Any]]) -> None:
    headers = list(dict.fromkeys(str(key) for record in records for key in record))
    cells = []
    for record in records:
        row = []
        for key in headers:
            value = record.get(key)
            if value is None:
                row.append("")
            elif key == "error":
                row.append(wording.small(value))
            elif key in _SIGNED:
                row.append(wording.signed(value))
            else:
                row.append(wording.plain(value))
        cells.append(row)
    numeric = [key for key in headers if key in _SIGNED or key == "error"]
    table(rows.page, headers, cells, indent=rows.indent, right=numeric)


def _torch(rows: _Rows, finding: Finding, target: TargetReport) -> None:
    """Add torch's own verdict on the finding's sample: gradcheck at first order, gradgradcheck at
    second."""
    failed = finding.severity != "info"
    for family, name, verdict in (
        ("GL4", "gradcheck", target.gradcheck),
        ("GL5", "gradgradcheck", target.gradgradcheck),
    ):
        if verdict is not None and wording.same_sample(finding, verdict, family):
            rows.add(name, wording.torch_verdict(verdict, failed))


def _cut(lines: list[str], count: int | None, page: Page, *, first: bool) -> list[str]:
    if count is None or len(lines) <= count:
        return lines
    left = page.clean(f"… {len(lines) - count} more lines (-v shows them)")
    return [*lines[:count], left] if first else [left, *lines[-count:]]
