"""Plots of a sweep: in the terminal by plotext, in a file by matplotlib (extra ``plot``)."""

from __future__ import annotations

import importlib
import itertools
import math
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlint.base.errors import GradlintError
from gradlint.base.files import write_whole
from gradlint.model.sweep import InputSweep, SweepReport
from gradlint.report.sweep_words import INSTALL_PLOT

if TYPE_CHECKING:
    Points = Sequence[tuple[float, float]]

#: File types of ``--plot``.
SUFFIXES = (".png", ".svg", ".pdf")

#: Marks in the terminal, in the order drawn: later ones lie on top.
MARKS = {"truncation": ".", "roundoff": ":", "floor": "-", "error": "*", "chosen": "O"}

_KEY = "* error  . truncation  : roundoff  - noise floor  O chosen step"

#: Rows of a plot, and the width beyond which it gains nothing.
_HEIGHT, _MOST_WIDTH = 18, 96

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = str.maketrans("┌┐└┘─│┤├┬┴┼", "++++-|+++++")

#: Decades of the vertical axis kept below the smallest predicted error.
_BELOW = 1.0


def curves(item: InputSweep) -> dict[str, list[tuple[float, float]]]:
    """(h, error) of every curve of a plot, under the names in :data:`MARKS`; positive values."""
    steps = [step for step in item.steps if step.error is not None]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in MARKS}
    for step in steps:
        for name, value in (
            ("truncation", step.truncation),
            ("roundoff", step.roundoff),
            ("error", step.error),
        ):
            if value is not None and math.isfinite(value) and (value > 0.0 or name == "error"):
                found[name].append((step.h, value))
        if step.chosen and step.error is not None:
            found["chosen"].append((step.h, step.error))
    if item.floor and steps:
        found["floor"] = [(steps[0].h, item.floor), (steps[-1].h, item.floor)]
    return found


def limits(found: dict[str, list[tuple[float, float]]]) -> tuple[float, float]:
    """Lower and upper end of the vertical axis, positive.

    The curve of the truncation error is cut at the noise floor: it would fall to 1e-30.
    """
    shown = [y for name in ("error", "roundoff", "floor") for _, y in found[name] if y > 0.0]
    if not shown:
        return 1e-1, 1e1
    floor = found["floor"][0][1] if found["floor"] else min(shown)
    return max(min(shown), floor * 1e-3) / 10.0**_BELOW, max(shown) * 2.0


def terminal_plot(item: InputSweep, width: int, *, ascii: bool = False) -> list[str]:
    """Lines of a log-log plot; empty without plotext or without anything to plot.

    Args:
        item: the sweep.
        width: columns.
        ascii: whether only ASCII may be used.
    """
    found = curves(item)
    if not found["error"]:
        return []
    try:
        plotext = importlib.import_module("plotext")
    except ImportError:
        return []
    low, high = limits(found)
    columns = max(24, min(width, _MOST_WIDTH))
    scattered = {
        name: [
            (math.log10(h), math.log10(min(max(y, low), high)))
            for h, y in _filled(name, points, columns)
            if name in ("error", "chosen") or low <= y <= high
        ]
        for name, points in found.items()
    }
    draw = _draw_5 if hasattr(plotext, "plotsize") else _draw_6
    xs = [h for h, _ in found["error"]]
    x_ticks = _ticks(min(xs), max(xs), max(2, columns // 14))
    y_ticks = _ticks(low, high, 6)
    text = _ESCAPES.sub("", draw(plotext, scattered, columns, x_ticks, y_ticks))
    if ascii:
        text = text.translate(_FRAME)
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    return [*lines, *_wrapped(_KEY, columns)]


def save_plot(report: SweepReport, path: str) -> None:
    """Draw every input of ``report`` into the file ``path`` (png, svg or pdf).

    Raises:
        GradlintError: unknown suffix, matplotlib absent, or the file can't be written.
    """
    check_plot(path)
    figures = importlib.import_module("matplotlib.figure")
    items = [(t.target, item) for t in report.targets for item in t.inputs if item.steps]
    figure: Any = figures.Figure(figsize=(7.0, 4.2 * max(1, len(items))), layout="constrained")
    for place, (target, item) in enumerate(items):
        axes = figure.add_subplot(len(items), 1, place + 1)
        _draw_axes(axes, item, f"{target}: {item.name} ({item.verdict})")
    drawn = BytesIO()
    figure.savefig(drawn, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
    try:
        write_whole(path, [drawn.getvalue()])
    except OSError as error:
        raise GradlintError(
            f"can't be written: {error.strerror or error}", place=path, hint="name another file"
        ) from None


def check_plot(path: str) -> None:
    """Raise, before anything runs, if :func:`save_plot` could not draw into ``path``."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise GradlintError(
            f"{Path(path).name!r} does not say which kind of plot to write",
            place="--plot",
            hint=f"let the name end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
        )
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        raise GradlintError(
            "plots into a file need matplotlib", place="--plot", hint=INSTALL_PLOT
        ) from None


# -- terminal --------------------------------------------------------------------------------------


def _filled(name: str, points: Points, columns: int) -> Points:
    """Points of a curve; predicted curves get points between them, on straight lines in log-log."""
    if name in ("error", "chosen") or len(points) < 2:
        return points
    dense = []
    each = max(1, 2 * columns // (len(points) - 1))
    for (h, y), (k, z) in itertools.pairwise(points):
        for part in range(each):
            share = part / each
            dense.append((h ** (1 - share) * k**share, y ** (1 - share) * z**share))
    return [*dense, points[-1]]


def _ticks(low: float, high: float, most: int) -> tuple[list[float], list[str]]:
    """Whole decades between two positive numbers, at most ``most``."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    stride = max(1, math.ceil((last - first + 1) / most))
    decades = list(range(last, first - 1, -stride))[::-1]
    return [float(d) for d in decades], [f"1e{d:+03d}" for d in decades]


def _draw_5(
    plotext: Any,
    scattered: dict[str, list[tuple[float, float]]],
    columns: int,
    x_ticks: tuple[list[float], list[str]],
    y_ticks: tuple[list[float], list[str]],
) -> str:
    """By the module-level interface of plotext 5."""
    plotext.clear_figure()
    plotext.limitsize(False, False)
    plotext.plotsize(columns, _HEIGHT)
    plotext.theme("clear")
    for name, points in scattered.items():
        if points:
            plotext.scatter([h for h, _ in points], [y for _, y in points], marker=MARKS[name])
    plotext.xticks(*x_ticks)
    plotext.yticks(*y_ticks)
    text = str(plotext.build())
    plotext.clear_figure()
    return text


def _draw_6(
    plotext: Any,
    scattered: dict[str, list[tuple[float, float]]],
    columns: int,
    x_ticks: tuple[list[float], list[str]],
    y_ticks: tuple[list[float], list[str]],
) -> str:
    """By the figure of plotext 6."""
    figure = plotext.figure
    figure.clear()
    figure.plot_size(columns, _HEIGHT)
    figure.theme("colorless")
    for name, points in scattered.items():
        if points:
            xs, ys = [h for h, _ in points], [y for _, y in points]
            figure.draw(figure.signal(xs, ys, marker=MARKS[name]))
    figure.ruler("x").ticks(*x_ticks)
    figure.ruler("y").ticks(*y_ticks)
    text = str(figure.build())
    figure.clear()
    return text


def _wrapped(text: str, columns: int) -> list[str]:
    lines = [""]
    for word in re.split(r"  +", text):
        if lines[-1] and len(lines[-1]) + 2 + len(word) > columns:
            lines.append("")
        lines[-1] += ("  " if lines[-1] else "") + word
    return lines


# -- file ------------------------------------------------------------------------------------------


def _draw_axes(axes: Any, item: InputSweep, title: str) -> None:
    found = curves(item)
    low, high = limits(found)
    style: dict[str, tuple[str, dict[str, Any]]] = {
        "truncation": ("truncation C·h²", {"linestyle": "--", "color": "tab:orange"}),
        "roundoff": ("roundoff κσ/h", {"linestyle": "--", "color": "tab:green"}),
        "floor": ("noise floor", {"linestyle": ":", "color": "gray"}),
        "error": ("|numeric − claimed|", {"marker": "o", "markersize": 4, "color": "tab:blue"}),
    }
    plot: Callable[..., Any] = axes.plot
    for name, (label, options) in style.items():
        points = [(h, y) for h, y in found[name] if y > 0.0]
        if points:
            plot([h for h, _ in points], [y for _, y in points], label=label, **options)
    for h, y in found["chosen"]:
        axes.axvline(h, color="tab:red", linewidth=0.8)
        plot(
            [h],
            [max(y, low)],
            "o",
            markersize=10,
            markerfacecolor="none",
            color="tab:red",
            label=f"chosen step {h:.1e}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_xlabel("step h, relative to the size of each element")
    axes.set_ylabel("error of the slope")
    # Names may hold dollar signs, which matplotlib would take for mathematics.
    axes.set_title(title.replace("$", r"\$"), fontsize="medium")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize="small")
