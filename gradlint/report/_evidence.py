"""What a finding's evidence says, row by row, for all that show it to people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlint.base.terminal import lines_of
from gradlint.report import wording

#: How many elements and lines of output are shown without ``-v``; the JSON report holds all.
ELEMENTS = 8
TRACEBACK_LINES = 12
OUTPUT_LINES = 10
ORIGINAL_LINES = 30

#: Keys that have rows of their own.
SPECIAL = (
    *wording.MEASUREMENT,
    *("elements", "error_map", "original", "traceback", "output_tail"),
)

_SIGNED = ("returned", "measured", "expected", "analytic", "numeric", "correct", "float64")


@dataclass(frozen=True)
class Row:
    """One row of evidence.

    Args:
        label: of the row.
        lines: its text, hidden characters escaped.
        records: a table below it, each record as column → value.
        whole: whether each line stays in one piece, as it is.
        most: lines and records that are shown where room is short; None for all.
        last: whether those are the last ones.
    """

    label: str
    lines: Sequence[str] = ()
    records: Sequence[Mapping[str, Any]] = field(default=())
    whole: bool = False
    most: int | None = None
    last: bool = False


def evidence_rows(
    evidence: Mapping[str, Any], *, verbose: bool = False, ascii: bool = False
) -> Iterator[Row]:
    """The rows of ``evidence``: what was measured, all else by its key, texts of others at last."""
    elements = evidence.get("elements") or []
    measured = wording.measurement(evidence, verbose=verbose)
    if measured or elements:
        listed = _is_records(elements)
        told = [] if listed or not elements else [wording.plain(elements)]
        yield Row(
            "measured",
            [*(measured or ["worst elements"]), *told],
            elements if listed else (),
            most=ELEMENTS,
        )
    for key, value in evidence.items():
        if key in SPECIAL or value is None or value in ("", [], {}):
            continue
        label = key.replace("_", " ")
        if isinstance(value, list) and _is_records(value):
            yield Row(label, records=value)
        elif isinstance(value, list) and any(isinstance(item, str) for item in value):
            yield Row(label, [line for item in value for line in lines_of(str(item), ascii)])
        else:
            yield Row(label, lines_of(wording.plain(value), ascii))
    yield from _texts(evidence, ascii)


def _texts(evidence: Mapping[str, Any], ascii: bool) -> Iterator[Row]:
    for key, label, most, last in (
        ("original", "original", ORIGINAL_LINES, False),
        ("traceback", "traceback", TRACEBACK_LINES, True),
        ("output_tail", "printed", OUTPUT_LINES, True),
    ):
        value = evidence.get(key)
        if value:
            parts = value if isinstance(value, list) and key != "original" else [value]
            lines = [line for part in parts for line in lines_of(str(part), ascii)]
            yield Row(label, lines, whole=True, most=most, last=last)


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def cells(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]], list[str]]:
    """Headers and rows of a table of ``records``, and which columns are numbers."""
    headers = list(dict.fromkeys(str(key) for record in records for key in record))
    rows = [[_cell(key, record.get(key)) for key in headers] for record in records]
    return headers, rows, [key for key in headers if key in _SIGNED or key == "error"]


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "error":
        return wording.small(value)
    return wording.signed(value) if key in _SIGNED else wording.plain(value)
