"""Excerpts of source: numbered lines, the faulty expression underlined or marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

from gradlint.base.terminal import TAB, clean, escape
from gradlint.model.report import Excerpt, Location
from gradlint.report.text import wrap
from gradlint.report.wording import computed_label

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
    found = list(_spans(lines, place))
    for number, begin, stop in found:
        text = lines[number]
        left = cell_len(_expanded(text[:begin], ascii))
        right = cell_len(_expanded(text[:stop], ascii))
        mark = _Mark(
            left, max(right, left + 1), char, style, label if number == found[-1][0] else ""
        )
        marks.setdefault(number, []).append(mark)


def _spans(lines: Mapping[int, str], place: Location) -> Iterator[tuple[int, int, int]]:
    """The lines of ``place`` that are not blank, each with where it begins and ends there."""
    last = place.end_line or place.line
    if last - place.line >= MARKED_LINES:
        last = place.line
    for number in range(place.line, last + 1):
        text = lines.get(number, "")
        if not text.strip():
            continue
        blank = len(text) - len(text.lstrip())
        begin = max(0, place.column - 1) if number == place.line else blank
        stop = len(text.rstrip())
        if number == (place.end_line or place.line):
            stop = place.end_column - 1 if place.end_column else _word_end(text, begin)
        yield number, begin, max(stop, begin)


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


@dataclass(frozen=True)
class MarkedLine:
    """One line of source for a page that marks by colour.

    Args:
        number: of the line.
        pieces: its text in pieces, each with "mark" (the faulty expression), "related" or "".
        note: what the marked expression stands for, below its last line.
        skipped: whether lines before it are left out.
    """

    number: int
    pieces: list[tuple[str, str]]
    note: str = ""
    skipped: bool = False


def marked_lines(
    excerpt: Excerpt, location: Location | None, related: Sequence[Location] = ()
) -> list[MarkedLine]:
    """The excerpt with the text of ``location`` and of ``related`` marked; hidden characters are
    escaped."""
    lines = dict(excerpt.lines)
    kinds: dict[int, list[tuple[int, int, str]]] = {}
    noted = 0
    for place in related:
        if location is not None and place.file == location.file:
            for number, begin, stop in _spans(lines, place):
                kinds.setdefault(number, []).append((begin, stop, "related"))
    if location is not None:
        for number, begin, stop in _spans(lines, location):
            kinds.setdefault(number, []).append((begin, stop, "mark"))
            noted = number
    noted = noted or max(lines, default=0)
    found: list[MarkedLine] = []
    for number, text in lines.items():
        skipped = bool(found) and number != found[-1].number + 1
        note = clean(excerpt.label) if number == noted else ""
        pieces = list(_pieces(text.rstrip("\r\n"), kinds.get(number, [])))
        found.append(MarkedLine(number, pieces, note, skipped))
    return found


def _pieces(text: str, spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    """``text`` in pieces of one kind each; where spans overlap, the last one counts."""
    kinds = [""] * len(text)
    for begin, stop, kind in spans:
        kinds[begin:stop] = [kind] * len(kinds[begin:stop])
    begin = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or kinds[end] != kinds[begin]:
            yield escape(text[begin:end].replace("\t", " " * TAB)), kinds[begin]
            begin = end
