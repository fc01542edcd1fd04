"""What the figures of a page show."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradlint.model.report import Argument, Finding, SampleReport, TargetReport
from gradlint.model.sweep import InputSweep, SweepStep
from gradlint.report._figures import HEIGHT, WIDTH, HeatMap, heat_map, sweep_plot


def mapped(shape: list[int], errors: dict[tuple[int, ...], float]) -> HeatMap | None:
    elements = [{"index": list(index), "error": error} for index, error in errors.items()]
    sample = SampleReport("s", "given", [Argument("x", shape, "float64")])
    finding = Finding("GL401", "n", "error", "m", input="x", sample="s")
    finding.evidence = {"elements": elements}
    return heat_map(finding, TargetReport("t", samples=[sample], findings=[finding]))


def whole(
    shape: list[int], errors: list[float], changes: dict[str, Any] | None = None
) -> HeatMap | None:
    evidence = {"shape": shape, "positions": list(range(len(errors))), "errors": errors}
    evidence |= changes or {}
    finding = Finding("GL401", "n", "error", "m", input="x", evidence={"error_map": evidence})
    return heat_map(finding, TargetReport("t"))


def cells(found: HeatMap) -> dict[tuple[int, int], int]:
    """(row, column) → shade."""
    return {
        (int(row), int(column) + step): shade
        for shade, path in found.paths.items()
        for column, row, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path)
        for step in range(int(width))
    }


def test_a_few_elements_of_a_matrix() -> None:
    found = mapped([3, 4], {(0, 3): 2.0, (2, 1): 0.02, (2, 2): 1e-9})
    assert found is not None
    assert (found.rows, found.columns, found.largest) == (3, 4, "2.0e+00")
    assert cells(found) == {(0, 3): 5, (2, 1): 3, (2, 2): 1}
    assert found.caption == "gradient of x (3×4): 3 of 12 elements are shown"


def test_all_elements() -> None:
    found = whole([2, 3], [0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    assert found is not None
    assert cells(found) == {(0, 0): 0, (0, 1): 5, (0, 2): 5, (1, 0): 0, (1, 1): 5, (1, 2): 0}
    assert found.paths[5] == "M1 0h2v1h-2zM1 1h1v1h-1z"
    assert found.caption == "gradient of x (2×3): all 6 elements"


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "index", "cell"),
    [
        ([], 1, 1, (), (0, 0)),
        ([5], 1, 5, (3,), (0, 3)),
        ([70], 3, 32, (69,), (2, 5)),
        ([2, 3, 4], 6, 4, (1, 2, 3), (5, 3)),
        ([100, 200], 34, 40, (99, 199), (33, 39)),
    ],
)
def test_layouts(
    shape: list[int], rows: int, columns: int, index: tuple[int, ...], cell: tuple[int, int]
) -> None:
    found = mapped(shape, {index: 1.0})
    assert found is not None
    assert (found.rows, found.columns) == (rows, columns)
    assert cells(found) == {cell: 5}


def test_of_a_block_the_worst_counts() -> None:
    found = mapped([100, 100], {(0, 0): 1e-4, (2, 2): 1.0, (99, 99): 1e-2})
    assert found is not None
    assert cells(found) == {(0, 0): 5, (33, 33): 3}
    assert found.caption.endswith("; a cell is the worst of 3×3 elements")


def test_errors_that_are_not_finite() -> None:
    found = whole([3], [float("nan"), 1.0, 0.0])
    assert found is not None
    assert cells(found) == {(0, 0): 5, (0, 1): 1, (0, 2): 0}
    assert found.largest == "more than any number"


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [0]},  # positions outside are left out
        {"shape": "2"},
        {"shape": [-1]},
        {"shape": [10**6, 10**6]},
        {"positions": "012"},
        {"errors": {}},
        {"positions": [True, None, "a"]},
    ],
)
def test_what_is_no_map_is_not_drawn(changes: dict[str, Any]) -> None:
    assert whole([3], [0.0, 0.0, 1.0], changes) is None


def test_without_elements_or_a_shape_there_is_no_map() -> None:
    assert mapped([3], {}) is None
    assert whole([3], [0.0, 0.0, 0.0]) is None
    assert mapped([3], {(1, 1): 1.0}) is None
    assert mapped([3], {(7,): 1.0}) is None


def test_a_curve_lies_inside_its_plot() -> None:
    steps = [
        SweepStep(2.0**-n, "ok", 1.0, 1.0, 4.0**-n, 4.0**-n, 1e-16 * 2.0**n, chosen=n == 20)
        for n in range(1, 41)
    ]
    plot = sweep_plot(InputSweep("x", verdict="agrees", steps=steps))
    assert plot is not None
    assert {curve.name for curve in plot.curves} == {"truncation", "roundoff", "floor", "error"}
    for curve in plot.curves:
        for point in curve.points.split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    xs = [x for x, _ in plot.dots]
    assert xs == sorted(xs, reverse=True)  # steps become smaller to the left
    assert len(plot.chosen) == 1
    assert [tick.text for tick in plot.x_ticks] == sorted(
        (tick.text for tick in plot.x_ticks), key=float
    )


def test_nothing_to_plot() -> None:
    assert sweep_plot(InputSweep("x")) is None
    assert sweep_plot(InputSweep("x", steps=[SweepStep(0.5, "ok", error=1.0)])) is None
