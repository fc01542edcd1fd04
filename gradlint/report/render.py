"""A report as text in any format, and what a stream can show."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import msgspec
from rich.text import Text

from gradlint.base.errors import GradlintError
from gradlint.base.text import did_you_mean
from gradlint.model.report import Report, jsonable
from gradlint.model.rule import Rule
from gradlint.model.sweep import SweepReport
from gradlint.report import wording
from gradlint.report._full import report_steps
from gradlint.report._gitlab import gitlab_parts
from gradlint.report._jsonl import jsonl_parts
from gradlint.report._junit import check_junit, junit_parts
from gradlint.report._markdown import markdown_parts
from gradlint.report._page import check_html, html_parts
from gradlint.report._sarif import sarif_parts
from gradlint.report.github import github_parts
from gradlint.report.text import Page

#: Output formats, as they are named on the command line.
FORMATS = (
    *("full", "concise", "json", "jsonl", "junit", "sarif", "github", "gitlab", "markdown", "html"),
)

#: Those laid out as lines for a terminal; the others are the same wherever they are written.
PAGES = ("full", "concise")


#: Levels of a report in JSON that are written piece by piece: the report, its targets, one of them,
#: its findings. What is deeper, such as one finding, is written as one piece.
_PIECEWISE = 4


def json_parts(report: Report) -> Iterator[str]:
    """``report`` as JSON in printable ASCII, indented by two, keys in the order of the model; in
    pieces, of which the largest holds one finding."""
    yield from _json_parts(report.entries(), 0)
    yield "\n"


def _json_parts(value: Any, level: int) -> Iterator[str]:
    indent = "  " * level
    if level < _PIECEWISE and isinstance(value, dict) and value:
        for position, (key, item) in enumerate(value.items()):
            yield f"{',' if position else '{'}\n{indent}  {json.dumps(str(key))}: "
            yield from _json_parts(item, level + 1)
        yield f"\n{indent}}}"
    elif level < _PIECEWISE and isinstance(value, (list, tuple, Iterator)):
        position = -1
        for position, item in enumerate(value):
            yield f"{',' if position else '['}\n{indent}  "
            yield from _json_parts(item, level + 1)
        yield "[]" if position < 0 else f"\n{indent}]"
    else:
        yield _json_whole(value).replace("\x7f", "\\u007f").replace("\n", f"\n{indent}")


def _json_whole(value: Any) -> str:
    plain = jsonable(value)
    # Python's encoder is written in C where it need not indent.
    text = json.dumps(plain, allow_nan=False)
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:  # half of a surrogate pair
        return json.dumps(plain, indent=2, allow_nan=False)


def render(
    report: Report,
    format: str = "full",
    *,
    width: int | None = None,
    color: bool = False,
    ascii: bool = False,
    verbose: int = 0,
    rules: Sequence[Rule] = (),
    sweeps: Sequence[SweepReport] = (),
) -> str:
    """``report`` as text that ends in a line end.

    Args:
        report: what to show.
        format: one of :data:`FORMATS`.
        width: columns; None for those of the terminal, or 80 without one.
        color: whether to use ANSI colours.
        ascii: whether only ASCII may be printed.
        verbose: 1 adds anatomy and checks, and shortens nothing.
        rules: the catalogue, from which names and texts of rules come.
        sweeps: sweeps of the same operators, whose curves ``html`` shows.

    Raises:
        GradlintError: the format is unknown, and the nearest is offered; or it needs a package
            that is not installed.
    """
    return "".join(
        render_parts(
            report,
            format,
            width=width,
            color=color,
            ascii=ascii,
            verbose=verbose,
            rules=rules,
            sweeps=sweeps,
        )
    )


def render_parts(
    report: Report,
    format: str = "full",
    *,
    width: int | None = None,
    color: bool = False,
    ascii: bool = False,
    verbose: int = 0,
    rules: Sequence[Rule] = (),
    sweeps: Sequence[SweepReport] = (),
) -> Iterator[str]:
    """The text of :func:`render` in pieces, whose size does not grow with the report."""
    if format not in FORMATS:
        raise GradlintError(
            f"unknown output format {format!r}",
            place="--output-format",
            hint=did_you_mean(format, FORMATS, f"choose from {', '.join(FORMATS)}"),
        )
    if format in _WRITERS:
        return _WRITERS[format](report)
    if format == "html":
        return html_parts(report, rules, sweeps)
    if format in _WITH_RULES:
        return _WITH_RULES[format](report, rules)
    columns = shutil.get_terminal_size((80, 24)).columns if width is None else width
    page = Page(columns, ascii=ascii, verbose=verbose)
    steps = concise_steps if format == "concise" else report_steps
    return _page_parts(page, steps(page, report), color=color)


_WRITERS: dict[str, Callable[[Report], Iterator[str]]] = {
    "json": json_parts,
    "jsonl": jsonl_parts,
    "github": github_parts,
    "gitlab": gitlab_parts,
    "markdown": markdown_parts,
}

_WITH_RULES: dict[str, Callable[[Report, Sequence[Rule]], Iterator[str]]] = {
    "junit": junit_parts,
    "sarif": sarif_parts,
}


def check_installed(format: str) -> None:
    """Raise, before anything is run, if ``format`` needs a package that is not installed."""
    if format == "html":
        check_html()
    if format == "junit":
        check_junit()


def _page_parts(page: Page, steps: Iterator[None], *, color: bool) -> Iterator[str]:
    for _ in steps:
        yield page.drained(color=color)
    yield page.text(color=color)


def concise_steps(page: Page, report: Report) -> Iterator[None]:
    """Add one line per finding, one per inconclusive check, and one per check that did not run
    where nothing else was asked for; nothing else."""
    for target in report.targets:
        for finding in target.findings:
            place = str(finding.location) if finding.location else target.target
            words = [str(finding.severity)] if finding.severity != "error" else []
            words += [wording.IN_BASELINE] if finding.baselined else []
            level = f" ({', '.join(words)})" if words else ""
            _add_line(page, place, finding.code, finding.severity, f"{finding.message}{level}")
            yield
        unsure = {"inconclusive"}
        if target.verdict == "inconclusive" and not any(
            check.verdict in unsure for check in target.checks
        ):
            unsure = {"skipped"}  # rules that were selected, and could not run
        for check in target.checks:
            if check.verdict in unsure:
                note = f": {check.note}" if check.note else ""
                step = f"; next: {check.help}" if check.help else ""
                said = f"inconclusive ({wording.NOT_PASSED}){note}{step}"
                place = str(target.location) if target.location else target.target
                _add_line(page, place, check.code, "inconclusive", said)
                yield


def _add_line(page: Page, place: str, code: str, level: str, message: str) -> None:
    text = Text().append(page.clean(place), "bold").append(": ")
    text.append(code, wording.STYLES.get(level, "bold")).append(" " + page.clean(message))
    page.line(text)


def stream_options(stream: TextIO) -> dict[str, Any]:
    """What ``stream`` can show: ``width``, ``color`` and ``ascii`` for :func:`render`.

    Colour needs a terminal that is not dumb and no ``NO_COLOR``; ``FORCE_COLOR`` overrides both.
    ASCII is for streams whose encoding can't hold more.
    """
    terminal = bool(getattr(stream, "isatty", lambda: False)())
    color = terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        color = True
    try:
        "…×→".encode(getattr(stream, "encoding", None) or "utf-8")
        plain = False
    except (UnicodeEncodeError, LookupError):
        plain = True
    width = shutil.get_terminal_size((80, 24)).columns if terminal else _columns()
    return {"width": width, "color": bool(color), "ascii": plain}


def _columns() -> int:
    """Width of output that does not go to a terminal: ``COLUMNS`` if set, else 80."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isdigit() and int(text) > 0 else 80
