"""Sweeps as text for terminals and programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from rich.text import Text

from gradlint.base.terminal import lines_of
from gradlint.model.sweep import InputSweep, SweepReport, SweepStep, SweepTarget
from gradlint.report import sweep_words as words
from gradlint.report import wording
from gradlint.report.plot import terminal_plot
from gradlint.report.table import table
from gradlint.report.text import Page

# The JSON of a sweep says in words what the text says.
InputSweep.words = words

#: Output formats of a sweep.
SWEEP_FORMATS = ("full", "json")

#: Widths from which on the table has all columns, or most of them.
_ALL_COLUMNS = 90
_MOST_COLUMNS = 66

#: What limits a step, in narrow tables; the chosen step is marked with "<".
_SHORT = {"truncation": "trunc.", "roundoff": "round.", "not finite": "not fin."}


def render_sweep(
    report: SweepReport,
    format: str = "full",
    *,
    width: int = 80,
    color: bool = False,
    ascii: bool = False,
) -> str:
    """``report`` as text that ends in a line end. ``format``: "full" or "json"."""
    if format == "json":
        return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"
    page = Page(width, ascii=ascii)
    add_sweep(page, report)
    return page.text(color=color)


def add_sweep(page: Page, report: SweepReport) -> None:
    """Add tables and plots of all inputs of ``report`` to ``page``."""
    for target in report.targets:
        page.blank()
        _target(page, target)
    _overview(page, report)
    page.blank()
    page.paragraph(words.summary(report))
    if any(item.steps for item in report.inputs):
        page.paragraph(words.LEGEND)
        missing = words.plot_missing()
        if missing:
            page.paragraph(missing, hanging=2)


def _target(page: Page, target: SweepTarget) -> None:
    line = Text().append(f"{target.verdict:<5}", wording.STYLES.get(target.verdict, "bold"))
    line.append("  ").append(page.clean(target.target), "bold")
    if target.sample is not None:
        shown = f"{wording.arguments(target.sample)} ({wording.origin(target.sample)})"
        line.append("  ").append(page.clean(shown))
    page.paragraph(line, hanging=7)
    for note in target.notes:
        page.row("note", lines_of(note, page.ascii))
    if target.error:
        page.row("error", lines_of(target.error, page.ascii))
    for item in target.inputs:
        page.blank()
        _input(page, item)


def _input(page: Page, item: InputSweep) -> None:
    style = {"agrees": "bold green", "differs": "bold red"}.get(item.verdict, "bold yellow")
    text = Text().append(page.clean(item.name), "bold").append("  ").append(item.verdict, style)
    text.append(": ").append(page.clean(words.verdict(item)))
    page.paragraph(text, indent=2, hanging=2)
    for line in [*words.numbers(item), *words.limits(item), *words.notes(item)]:
        page.paragraph(line, indent=4, hanging=2)
    _measurements(page, item)
    if not item.steps:
        return
    page.blank()
    _table(page, item)

    plot = terminal_plot(item, page.width, ascii=page.ascii)
    if plot:
        page.blank()
        for line in plot:
            page.line(line)


def _measurements(page: Page, item: InputSweep) -> None:
    if len(item.measurements) < 2:
        return
    page.blank()
    rows = [
        [
            one.method,
            "0" if one.residual == 0.0 else f"{one.residual:+.1e}",
            wording.small(one.bar),
            wording.power(one.resolution),
            words.steps_of(one),
            {True: "yes", False: "no", None: "unclear"}[one.agrees],
        ]
        for one in item.measurements
    ]
    headers = ("measured by", "residual", "bar", "resolves", "steps", "agrees")
    indent = 4 if page.width >= _MOST_COLUMNS else 0
    table(page, headers, rows, indent=indent, right=("residual", "bar", "resolves"))


def _overview(page: Page, report: SweepReport) -> None:
    """Add one row per input and dtype, if there are several."""
    if len(report.inputs) < 2:
        return
    several = len({target.target for target in report.targets}) > 1
    rows = [
        [
            item.name,
            target.target if several else "",
            item.dtype,
            item.verdict,
            f"{item.noise_factor:.2g}" if item.chosen_step is not None else "",
            _power(item.resolution),
            _power(item.best),
            _power(item.element_resolution),
        ]
        for target in report.targets
        for item in target.inputs
    ]
    headers = ("input", "target", "dtype", "verdict", "noise", "resolves", "best", "one element")
    page.blank()
    table(page, headers, rows, indent=0, right=headers[4:])
    page.blank()


def _power(value: float | None) -> str:
    return "" if value is None else wording.power(value)


def _table(page: Page, item: InputSweep) -> None:
    columns = ["step", "numeric", "claimed", "error", "truncation", "roundoff", "limited by"]
    if page.width < _ALL_COLUMNS:
        columns.remove("claimed")
    if page.width < _MOST_COLUMNS:
        columns = ["step", "error", "predicted", ""]
    rows = [_row(step, columns) for step in item.steps]
    table(page, columns, rows, indent=4 if page.width >= _MOST_COLUMNS else 0, right=columns[:-1])


def _row(step: SweepStep, columns: Sequence[str]) -> list[str]:
    short = "" in columns
    mark = step.limit if step.state == "ok" else step.state
    if short:
        mark = _SHORT.get(mark, mark) + (" <" if step.chosen else "")
    elif step.chosen:
        mark += ", chosen"
    predicted = None
    if step.roundoff is not None:
        predicted = (step.truncation or 0.0) + step.roundoff
    cells = {
        "step": wording.small(step.h),
        "numeric": "" if step.numeric is None else wording.signed(step.numeric),
        "claimed": "" if step.claimed is None else wording.signed(step.claimed),
        "error": _small(step.error),
        "truncation": _small(step.truncation),
        "roundoff": _small(step.roundoff),
        "predicted": _small(predicted),
        "limited by": mark,
        "": mark,
    }
    return [cells[column] for column in columns]


def _small(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return "0" if value == 0.0 else wording.small(value)
