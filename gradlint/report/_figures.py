"""Figures of a page, as the numbers and paths that an SVG needs: where a gradient is wrong, and how
the error of a numeric derivative depends on the step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlint.model.report import Finding, TargetReport
from gradlint.model.sweep import InputSweep
from gradlint.report import wording
from gradlint.report.plot import curves, limits

# -- heat map --------------------------------------------------------------------------------------

#: Cells along an axis of a map; of larger tensors, a cell is the worst of a block.
MOST_CELLS = 48

#: Columns in which a tensor of one axis is set.
LINE = 32

#: Shades of an error, by its logarithm, and decades that they span.
SHADES, DECADES = 5, 4.0

#: In place of an error that is not finite.
_WORST = 1e300

#: Elements of a tensor of which a map is drawn (heuristic: more is a blot).
MOST_ELEMENTS = 10_000_000


@dataclass(frozen=True)
class HeatMap:
    """The errors of a gradient, element by element.

    Args:
        rows, columns: cells of the map.
        paths: shade (0: measured and right) → path of the cells that have it, one unit each.
        caption: what is shown, in words.
        largest: the error of the strongest shade, in words.
    """

    rows: int
    columns: int
    paths: dict[int, str]
    caption: str
    largest: str


def heat_map(finding: Finding, target: TargetReport) -> HeatMap | None:
    """The map of a wrong gradient, or None where no single element is known to be wrong."""
    errors = _errors(finding)
    shape = _shape(finding, target)
    if not any(errors.values()) or shape is None or math.prod(shape) > MOST_ELEMENTS:
        return None
    if any(
        len(index) != len(shape) or any(not 0 <= i < n for i, n in zip(index, shape, strict=True))
        for index in errors
    ):
        return None
    rows, columns, place = _layout(shape)
    high, wide = math.ceil(rows / MOST_CELLS), math.ceil(columns / MOST_CELLS)
    worst: dict[tuple[int, int], float] = {}
    for index, error in errors.items():
        row, column = place(index)
        cell = row // high, column // wide
        worst[cell] = max(worst.get(cell, 0.0), error)
    largest = max(worst.values())
    shades: dict[tuple[int, int], int] = {
        cell: _shade(error, largest) for cell, error in worst.items()
    }
    of = "×".join(map(str, shape)) or "a single number"
    blocks = f"; a cell is the worst of {high}×{wide} elements" if high * wide > 1 else ""
    total = math.prod(shape)
    are = "is" if len(errors) == 1 else "are"
    measured = (
        f"{len(errors)} of {total} elements {are} shown"
        if len(errors) < total
        else f"all {wording.plural(total, 'element')}"
    )
    return HeatMap(
        math.ceil(rows / high),
        math.ceil(columns / wide),
        _paths(shades),
        f"gradient of {finding.input or 'the input'} ({of}): {measured}{blocks}",
        wording.small(largest) if largest < _WORST else "more than any number",
    )


def _errors(finding: Finding) -> dict[tuple[int, ...], float]:
    """Index → error of every element of which one is known."""
    found: dict[tuple[int, ...], float] = {}
    whole = finding.evidence.get("error_map")
    if isinstance(whole, dict):
        shape = _indices(whole.get("shape"))
        positions, errors = whole.get("positions"), whole.get("errors")
        if shape is not None and isinstance(positions, list) and isinstance(errors, list):
            for position, error in zip(positions, errors, strict=False):
                if _is_count(position) and _is_number(error) and position < math.prod(shape):
                    found[_unravel(position, shape)] = _finite(error)
    elements = finding.evidence.get("elements")
    for item in elements if isinstance(elements, list) else []:
        index = _indices(item.get("index")) if isinstance(item, dict) else None
        if index is not None and _is_number(item.get("error")):
            found[index] = _finite(item["error"])
    return found


def _shape(finding: Finding, target: TargetReport) -> tuple[int, ...] | None:
    """The shape of the gradient: its map's, or that of the argument in the finding's sample."""
    whole = finding.evidence.get("error_map")
    if isinstance(whole, dict):
        return _indices(whole.get("shape"))
    for sample in target.samples:
        if sample.label == finding.sample or finding.sample is None:
            for argument in sample.args:
                if argument.name == finding.input and argument.shape is not None:
                    return tuple(argument.shape)
    return None


def _layout(shape: Sequence[int]) -> tuple[int, int, Any]:
    """Rows and columns of a map, and the function from an index to both."""
    if len(shape) < 2:
        length = shape[0] if shape else 1
        columns = min(length, LINE)
        return (
            math.ceil(length / columns),
            columns,
            lambda index: divmod(index[0] if index else 0, columns),
        )

    def place(index: Sequence[int]) -> tuple[int, int]:
        row = 0
        for i, n in zip(index[:-1], shape[:-1], strict=True):
            row = row * n + i
        return row, index[-1]

    return math.prod(shape[:-1]), shape[-1], place


def _unravel(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        position, rest = divmod(position, size)
        index.append(rest)
    return tuple(reversed(index))


def _indices(value: Any) -> tuple[int, ...] | None:
    good = isinstance(value, (list, tuple)) and all(map(_is_count, value))
    return tuple(value) if good else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(error: float) -> float:
    """An error for a scale: what is not finite is as large as can be."""
    return min(abs(error), _WORST) if math.isfinite(error) else _WORST


def _shade(error: float, largest: float) -> int:
    """0 for none; the strongest within a factor of two of the largest."""
    if error <= 0.0 or largest <= 0.0:
        return 0
    share = max(0.0, 1.0 + math.log10(error / largest) / DECADES)
    return 1 + round((SHADES - 1) * share)


def _paths(shades: Mapping[tuple[int, int], int]) -> dict[int, str]:
    """Neighbours of one shade in a row are one rectangle."""
    paths: dict[int, list[str]] = {}
    start: tuple[int, int] | None = None
    width = 0
    for cell in [*sorted(shades), (-1, -1)]:
        next_to = start is not None and cell == (start[0], start[1] + width)
        if start is not None and next_to and shades[cell] == shades[start]:
            width += 1
            continue
        if start is not None:
            row, column = start
            paths.setdefault(shades[start], []).append(f"M{column} {row}h{width}v1h-{width}z")
        start, width = cell, 1
    return {shade: "".join(parts) for shade, parts in sorted(paths.items())}


# -- curves ----------------------------------------------------------------------------------------

#: Size of a plot and of its margins, in units of its own.
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 560.0, 300.0, 56.0, 40.0, 20.0

#: Ticks of an axis.
_TICKS = 7


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where, and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """One line of a plot: its name, and points as ``x,y x,y``."""

    name: str
    points: str


@dataclass(frozen=True)
class Plot:
    """The error of a numeric derivative against the step, both as logarithms."""

    title: str
    verdict: str
    curves: list[Curve]
    dots: list[tuple[float, float]]
    chosen: list[tuple[float, float]]
    x_ticks: list[Tick] = field(default_factory=list)
    y_ticks: list[Tick] = field(default_factory=list)


def sweep_plot(item: InputSweep) -> Plot | None:
    """The plot of one sweep, or None where there is no error to show."""
    found = curves(item)
    if not found["error"]:
        return None
    low, high = limits(found)
    steps = [h for h, _ in found["error"]]
    left, right = min(steps), max(steps)
    if not 0.0 < left < right or not 0.0 < low < high:
        return None

    def at(h: float, y: float) -> tuple[float, float]:
        across = _share(h, left, right)
        up = _share(min(max(y, low), high), low, high)
        return (
            round(LEFT + across * (WIDTH - LEFT - MARGIN), 1),
            round(HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - MARGIN), 1),
        )

    lines = [
        Curve(name, " ".join("{},{}".format(*at(h, y)) for h, y in found[name]))
        for name in ("truncation", "roundoff", "floor", "error")
        if len(found[name]) > 1
    ]
    return Plot(
        item.name,
        item.verdict,
        lines,
        [at(h, y) for h, y in found["error"]],
        [at(h, y) for h, y in found["chosen"]],
        [Tick(at(value, low)[0], text) for value, text in _decades(left, right)],
        [Tick(at(left, value)[1], text) for value, text in _decades(low, high)],
    )


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _decades(low: float, high: float) -> Iterator[tuple[float, str]]:
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    stride = max(1, math.ceil((last - first + 1) / _TICKS))
    for exponent in itertools.takewhile(lambda e: e <= last, itertools.count(first, stride)):
        yield 10.0**exponent, f"1e{exponent}"
