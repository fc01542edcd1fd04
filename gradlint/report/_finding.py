"""One finding in full: headline, source with carets, evidence, cause, help, reproduction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.text import Text

from gradlint.base.terminal import TAB, clean, escape, lines_of
from gradlint.model.report import Excerpt, Finding, Location, TargetReport
from gradlint.report import wording
from gradlint.report.table import table
from gradlint.report.text import Page, wrap
from gradlint.report.wording import computed_label

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
    if finding.baselined:
        parts.append((f" ({wording.IN_BASELINE})", "dim"))
    return [*parts, ("  ", ""), (finding.message, "")]


def add_finding(page: Page, finding: Finding, target: TargetReport) -> None:
    """Add ``finding``. Unless the page is verbose, an info gets its headline and help only, and a
    consequence, or what is in the baseline, one line."""
    if finding.follows is not None and not page.verbose:
        _consequence(page, finding)
        return
    text = Text()
    for part, style in headline(finding, target.target):
        text.append(part if part.isspace() else page.clean(part), style)
    page.paragraph(text, hanging=4)
    if finding.baselined and not page.verbose:
        return
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


# -- source excerpts: numbered lines, the faulty expression underlined -----------------------------

#: A span of this many lines or more is underlined at its first line only.
MARKED_LINES = 6


@dataclass(frozen=True)
class _Mark:
    """Cells ``start`` to ``end`` of one line, underlined with ``char``; a label or none."""

    start: int
    end: int
    char: str
    style: str
    label: str = ""


def excerpt_lines(
    excerpt: Excerpt,
    location: Location | None,
    related: Sequence[Location] = (),
    *,
    width: int = 80,
    ascii: bool = False,
) -> list[Text]:
    """The excerpt with carets under ``location`` and dashes under ``related``.

    If lines are wider than the page, their common indentation is removed; what is still too wide
    continues in the next row, with its carets, so that nothing is cut off.
    """
    digits = max((len(str(number)) for number, _ in excerpt.lines), default=1)
    room = max(8, width - digits - 5)
    sources = {number: _expanded(text, ascii) for number, text in excerpt.lines}
    shift = 0
    if any(cell_len(text) > room for text in sources.values()):
        shift = min((len(t) - len(t.lstrip(" ")) for t in sources.values() if t.strip()), default=0)
    raw = dict(excerpt.lines)
    label = clean(excerpt.label, ascii)
    marks = _marks(raw, location, related, label, ascii)

    result: list[Text] = []
    before: int | None = None
    for number, text in sources.items():
        if before is not None and number != before + 1:
            result.append(Text(f"  {'...':>{digits}}", "dim"))
        before = number
        shown = text[shift:]
        here = [
            _Mark(max(0, m.start - shift), max(1, m.end - shift), m.char, m.style, m.label)
            for m in marks.get(number, [])
        ]
        result.extend(_rows(number, shown, here, digits, room))
    if label and not any(mark.label == label for found in marks.values() for mark in found):
        result.extend(_gutter("", digits, line) for line in wrap(Text(label, "red"), room))
    return result


def _rows(number: int, text: str, marks: list[_Mark], digits: int, room: int) -> list[Text]:
    """One source line, in as many rows as it needs, each with its underlines below."""
    rows: list[Text] = []
    chunks = _chopped(text, room)
    start = 0
    for index, chunk in enumerate(chunks):
        last = index == len(chunks) - 1
        end = start + max(1, cell_len(chunk))
        rows.append(_gutter(str(number) if index == 0 else "", digits, Text(chunk)))
        for mark in marks:
            left, right = max(mark.start, start), min(mark.end, end)
            if last and mark.start >= end:
                left, right = mark.start, mark.end
            if left >= right:
                continue
            under = Text(" " * (left - start)).append(mark.char * (right - left), mark.style)
            finished = mark.end <= end or last
            if not mark.label or not finished:
                rows.append(_gutter("", digits, under))
            elif under.cell_len + 1 + cell_len(mark.label) <= room:
                rows.append(_gutter("", digits, under.append(" " + mark.label, mark.style)))
            else:
                rows.append(_gutter("", digits, under))
                label = wrap(Text(mark.label, mark.style), room)
                widest = max(line.cell_len for line in label)
                space = Text(" " * max(0, min(left - start, room - widest)))
                rows.extend(_gutter("", digits, space + line) for line in label)
        start = end
    return rows


def _chopped(text: str, room: int) -> list[str]:
    """``text`` in pieces of at most ``room`` cells, cut behind a near space or comma."""
    pieces = []
    while cell_len(text) > room:
        piece = chop_cells(text, room)[0]
        near = max(piece.rfind(" "), piece.rfind(","))
        if near >= 2 * len(piece) // 3:
            piece = piece[: near + 1]
        pieces.append(piece)
        text = text[len(piece) :]
    return [*pieces, text]


def _gutter(number: str, digits: int, text: Text) -> Text:
    return Text(f"  {number:>{digits}} | ", "dim").append_text(text)


def _marks(
    lines: dict[int, str],
    location: Location | None,
    related: Sequence[Location],
    label: str,
    ascii: bool,
) -> dict[int, list[_Mark]]:
    marks: dict[int, list[_Mark]] = {}
    if location is not None:
        _mark(marks, lines, location, "^", "bold red", label, ascii)
    for place in related:
        if location is not None and place.file == location.file:
            words = computed_label(_span(lines, location))
            _mark(marks, lines, place, "-", "blue", words, ascii)
    return marks


def _mark(
    marks: dict[int, list[_Mark]],
    lines: dict[int, str],
    place: Location,
    char: str,
    style: str,
    label: str,
    ascii: bool,
) -> None:
    last = place.end_line or place.line
    if last - place.line >= MARKED_LINES:
        last = place.line
    numbers = [n for n in range(place.line, last + 1) if lines.get(n, "").strip()]
    for number in numbers:
        text = lines[number]
        blank = len(text) - len(text.lstrip())
        begin = max(0, place.column - 1) if number == place.line else blank
        stop = len(text.rstrip())
        if number == (place.end_line or place.line):
            stop = place.end_column - 1 if place.end_column else _word_end(text, begin)
        left = cell_len(_expanded(text[:begin], ascii))
        right = cell_len(_expanded(text[:stop], ascii))
        found = _Mark(
            left, max(right, left + 1), char, style, label if number == numbers[-1] else ""
        )
        marks.setdefault(number, []).append(found)


def _word_end(text: str, begin: int) -> int:
    match = re.compile(r"\w+|\S").match(text, begin)
    return match.end() if match else begin + 1


def _span(lines: dict[int, str], place: Location) -> str:
    """The text of a location that lies on one line; empty for others."""
    if place.end_line not in (None, place.line) or place.end_column is None:
        return ""
    return lines.get(place.line, "")[place.column - 1 : place.end_column - 1]


def _expanded(text: str, ascii: bool) -> str:
    """One source line with tabs as spaces up to the next stop and hidden characters escaped."""
    shown = ""
    for piece in re.split(r"(\t)", text.rstrip("\r\n")):
        if piece == "\t":
            shown += " " * (TAB - cell_len(shown) % TAB)
        else:
            shown += escape(piece, ascii)
    return shown
