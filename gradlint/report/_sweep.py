"""Sweeps: the data model, and their text for terminals and programs."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gradlint.report import _sweep_words as words
from gradlint.report import _wording as wording
from gradlint.report._model import SCHEMA_VERSION, SampleReport, jsonable
from gradlint.report._table import table
from gradlint.report._text import Page, lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Output formats of a sweep.
SWEEP_FORMATS = ("full", "json")

#: From this width on the table has all columns; below, those that matter most.
_ALL_COLUMNS = 90
_MOST_COLUMNS = 66

#: What limits a step, where there is little room; the chosen step is marked with "<".
_SHORT = {"truncation": "trunc.", "roundoff": "round.", "not finite": "not fin."}


@dataclass(frozen=True)
class SweepStep:
    """One step.

    Args:
        h: step; every element of the input moves by h times its own size or less.
        state: "ok", "not finite", "raised" or "no change" (too fine for the outputs to change).
        numeric: numeric derivative along the direction; None where none could be taken.
        claimed: what backward claims it to be.
        error: |numeric − claimed|.
        truncation: predicted truncation error C·h²; None where none was seen.
        roundoff: predicted standard deviation of the roundoff.
        limit: "truncation" or "roundoff", whichever is predicted to be larger, or "plateau" where
            neither explains the error and the gradient is wrong.
        chosen: whether the verdict rests on this step (extrapolated with the one before).
    """

    h: float
    state: str
    numeric: float | None = None
    claimed: float | None = None
    error: float | None = None
    truncation: float | None = None
    roundoff: float | None = None
    limit: str = ""
    chosen: bool = False


@dataclass
class InputSweep:
    """The sweep of one input.

    Args:
        name, shape, dtype: of the input.
        verdict: "agrees", "differs", "cannot tell", "surrogate" (differs as declared) or "empty".
        reason: why it can't be told, if so: "kinks", "not confirmed", "claim not finite",
            "no steps", "noise".
        claimed, measured: slopes along the direction.
        error: |measured − claimed| after extrapolation.
        bar: error bar of ``error``.
        relative_error: ``error`` relative to the larger slope.
        resolution: smallest relative error of the gradient that the sweep would have seen.
        tolerated: relative errors below this are no wrong gradient.
        chosen_step: the step chosen.
        noise_factor: κ, measured noise over that of rounding the outputs once.
        output_dtype: coarsest dtype among the input and the outputs.
        curvature: C of the truncation error C·h²; None where none was seen.
        kinked, outputs: output elements with a kink at the sample, of how many.
        steps: coarsest first.
    """

    name: str
    shape: list[int] = field(default_factory=list)
    dtype: str = ""
    verdict: str = "cannot tell"
    reason: str = ""
    claimed: float | None = None
    measured: float | None = None
    error: float | None = None
    bar: float | None = None
    relative_error: float | None = None
    resolution: float | None = None
    tolerated: float | None = None
    chosen_step: float | None = None
    noise_factor: float = 1.0
    noise: float = 0.0
    output_dtype: str = ""
    curvature: float | None = None
    kinked: int = 0
    outputs: int = 0
    steps: list[SweepStep] = field(default_factory=list)

    @property
    def floor(self) -> float | None:
        """Smallest error that truncation and roundoff allow at any step."""
        sums = [
            (step.truncation or 0.0) + step.roundoff
            for step in self.steps
            if step.state == "ok" and step.roundoff is not None
        ]
        return min((total for total in sums if total > 0.0), default=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values, with the verdict in words."""
        found: dict[str, Any] = jsonable(self)
        steps = found.pop("steps")
        return found | {
            "floor": jsonable(self.floor),
            "message": words.verdict(self),
            "notes": words.notes(self),
            "steps": steps,
        }


@dataclass
class SweepTarget:
    """All sweeps of one operator on one sample; ``error`` says why there are none."""

    target: str
    kind: str = "unknown"
    sample: SampleReport | None = None
    inputs: list[InputSweep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def verdict(self) -> str:
        """ "error", "fail", "inconclusive", "pass" or "skipped" (nothing to sweep)."""
        verdicts = {item.verdict for item in self.inputs} - {"empty"}
        if self.error:
            return "error"
        for verdict, name in (("differs", "fail"), ("cannot tell", "inconclusive")):
            if verdict in verdicts:
                return name
        return "pass" if verdicts else "skipped"


@dataclass
class SweepReport:
    """What ``gradlint sweep`` found."""

    targets: list[SweepTarget] = field(default_factory=list)
    seed: int = 0
    environment: dict[str, Any] = field(default_factory=dict)
    gradlint: str = ""
    duration_s: float = 0.0

    @property
    def inputs(self) -> list[InputSweep]:
        """The sweeps of all targets."""
        return [item for target in self.targets for item in target.inputs]

    @property
    def ok(self) -> bool:
        """Whether something was swept, and nothing differs or crashed."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 agrees (or can't tell), 1 an input differs or the op crashed, 5 nothing was swept."""
        verdicts = {target.verdict for target in self.targets}
        if verdicts & {"error", "fail"}:
            return 1
        return 0 if verdicts & {"pass", "inconclusive"} else 5

    def to_dict(self) -> dict[str, Any]:
        """One object of JSON-able values; fields are only added within a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "gradlint": self.gradlint,
            "seed": self.seed,
            "environment": jsonable(self.environment),
            "duration_s": self.duration_s,
            "targets": [
                {
                    "target": target.target,
                    "kind": target.kind,
                    "verdict": target.verdict,
                    "sample": jsonable(target.sample),
                    "notes": jsonable(target.notes),
                    "error": target.error,
                    "inputs": [item.to_dict() for item in target.inputs],
                }
                for target in self.targets
            ],
        }

    def __str__(self) -> str:
        """Tables and plots at 80 columns, without colour."""
        return render_sweep(self, "full", width=80).rstrip("\n")

    def _repr_html_(self) -> str:
        """For a notebook: one element, all text escaped."""
        return f"<pre>{html.escape(str(self))}</pre>"


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
    for target in report.targets:
        page.blank()
        _target(page, target)
    page.blank()
    page.paragraph(words.summary(report))
    if any(item.steps for item in report.inputs):
        page.paragraph(words.LEGEND)
        missing = words.plot_missing()
        if missing:
            page.paragraph(missing, hanging=2)
    return page.text(color=color)


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
    for line in [*words.numbers(item), *words.notes(item)]:
        page.paragraph(line, indent=4, hanging=2)
    if not item.steps:
        return
    page.blank()
    _table(page, item)
    from gradlint.report._plot import terminal_plot

    plot = terminal_plot(item, page.width, ascii=page.ascii)
    if plot:
        page.blank()
        for line in plot:
            page.line(line)


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
