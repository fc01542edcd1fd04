"""Sweeps as text, plots and JSON."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys

import pytest
from rich.cells import cell_len

from gradlint.base.errors import GradlintError
from gradlint.model.report import Argument, SampleReport
from gradlint.model.sweep import InputSweep, Measurement, SweepStep, SweepTarget
from gradlint.report.display import SweepReport
from gradlint.report.plot import MARKS, check_plot, curves, limits, save_plot, terminal_plot
from gradlint.report.sweep import render_sweep
from gradlint.report.sweep_words import INSTALL_PLOT

CHOSEN = 2.0**-13


def steps(plateau: float = 0.0) -> list[SweepStep]:
    """Truncation 2·h², roundoff 1e-16/h, and an error that stops at ``plateau``."""
    found = []
    for e in range(1, 46, 2):
        h = 2.0**-e
        truncation, roundoff = 2.0 * h * h, 1e-16 / h
        error = math.hypot(plateau, truncation + roundoff)
        limit = "plateau" if error > 3 * (truncation + 6.5 * roundoff) else "truncation"
        limit = "roundoff" if roundoff > truncation and limit == "truncation" else limit
        found.append(
            SweepStep(h, "ok", 5.0 + error, 5.0, error, truncation, roundoff, limit, h == CHOSEN)
        )
    return found


def swept(name: str = "x", plateau: float = 0.0, **changes: object) -> InputSweep:
    item = InputSweep(
        name,
        [4, 3],
        "float64",
        verdict="differs" if plateau else "agrees",
        claimed=5.0,
        measured=5.0 - plateau,
        error=plateau or 1e-13,
        bar=2e-11,
        relative_error=plateau / 5.0 or 2e-14,
        resolution=4e-12,
        tolerated=1e-6,
        chosen_step=CHOSEN,
        noise_factor=1.5,
        noise=3e-16,
        output_dtype="float64",
        noise_level=2.2e-16,
        noise_roundings=1.2,
        noise_spacing=2.8e-14,
        curvature=2.0,
        truncation_from=3.1e-5,
        truncation_to=0.5,
        measurements=[
            Measurement("extrapolation", -plateau, 2e-11, 4e-12, not plateau, 2, CHOSEN, 2**-11),
            Measurement("window fit", -plateau, 6e-12, 1e-12, not plateau, 8, 1.1e-4, 1.3e-3),
            Measurement("path integral", -plateau, 5e-9, 1e-9, not plateau, 7, 0.125, 0.125),
        ],
        elements=12,
        elements_seen=12,
        element_resolution=3e-6,
        outputs=12,
        steps=steps(plateau),
    )
    for field, value in changes.items():
        setattr(item, field, value)
    return item


def report_of(*items: InputSweep, **changes: object) -> SweepReport:
    sample = SampleReport(
        "inferred", "inferred", [Argument("x", [4, 3], "float64", "cpu", [3, 1], True)]
    )
    target = SweepTarget("ops.py:Op", "function", sample, list(items))
    for field, value in changes.items():
        setattr(target, field, value)
    return SweepReport([target], seed=8315)


def flat(text: str) -> str:
    """``text`` with every run of spaces and line ends as one space."""
    return " ".join(text.split())


def test_a_right_gradient_reads():
    text = flat(render_sweep(report_of(swept()), width=80))
    assert "pass ops.py:Op x float64[4, 3] (inferred)" in text
    assert "x agrees: the error falls to 2.0e-14 of the slope" in text
    assert "an error of 4e-12 would have been seen" in text
    assert "slope claimed +5.000000, measured +5.000000 (error bar 2.0e-11) at step 1.2e-04" in text
    assert "1 input: agrees 1. Seed 8315." in text


def test_a_wrong_gradient_reads_as_a_plateau():
    text = flat(render_sweep(report_of(swept(plateau=0.3)), width=80))
    assert "fail ops.py:Op" in text
    assert (
        "x differs: the error stops at 3.0e-01 instead of falling: the gradient is wrong by that "
        "much along this direction (6 % of the slope)"
    ) in text
    assert "plateau, chosen" in text


def table_under(text: str, *head: str) -> str:
    """The table in ``text`` whose first line begins with the words ``head``."""
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.split()[: len(head)] == list(head))
    return "\n".join(lines[first:]).split("\n\n")[0] + "\n"


def test_the_table_shows_every_step_its_branch_and_the_chosen_one(page):
    assert table_under(render_sweep(report_of(swept()), width=100), "step", "numeric") == page


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("ascii", [False, True])
def test_nothing_is_wider_than_the_page(width, ascii):
    text = render_sweep(report_of(swept(), swept("weight", 0.3)), width=width, ascii=ascii)
    wide = [line for line in text.splitlines() if cell_len(line) > max(width, 38)]
    assert wide == []
    assert text.isascii() or not ascii
    assert flat(text).count("O chosen step") == 2


def test_names_are_no_markup():
    text = render_sweep(report_of(swept("x[red]"), target="op[/].py:[5]\x1b[31m"), width=80)
    assert "op[/].py:[5]\\x1b[31m" in text
    assert "x[red]" in text
    assert "\x1b" not in text


def test_colour_only_when_asked_for():
    report = report_of(swept())
    assert "\x1b[" not in render_sweep(report, width=80)
    coloured = render_sweep(report, width=80, color=True)
    assert "\x1b[" in coloured


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": "empty", "steps": []}, "x empty: it has no elements"),
        ({"verdict": "cannot tell", "reason": "kinks"}, "differs at exactly this sample"),
        ({"verdict": "cannot tell", "reason": "not confirmed"}, "not along another"),
        ({"verdict": "cannot tell", "reason": "claim not finite"}, "NaN or Inf for `x`"),
        ({"verdict": "cannot tell", "reason": "no steps"}, "only 23 of 23 steps"),
        (
            {"verdict": "cannot tell", "reason": "noise", "resolution": 0.2},
            "errors up to 2e-1 of the gradient could hide",
        ),
        ({"verdict": "surrogate", "error": 0.5}, "a surrogate is declared for `x`"),
        ({"reason": "rounded", "relative_error": 3e-8}, "but only to 3e-8"),
        (
            {"reason": "by window fit"},
            "the window fit agrees; an error of 1e-12 would have been seen",
        ),
        ({"kinked": 3}, "3 of 12 output elements have a kink at this sample and are left out"),
        ({"kinked": 1}, "1 of 12 output elements has a kink at this sample and is left out"),
        (
            {"noise_factor": 5e8, "noise": 1.2e-7},
            "noise is 5e+8 times that of rounding a float64 output once, as large as float32's",
        ),
        ({"noise_factor": 1e4, "noise": 2e-12}, "or digits cancel inside"),
        (
            {"verdict": "differs", "error": 5.0, "measured": 0.0},
            "the slope of the function is 0 there, but that of backward is not",
        ),
        (
            {"verdict": "differs", "error": 5.0, "claimed": 0.0},
            "backward claims slope 0, but that of the function is not",
        ),
    ],
)
def test_what_else_is_said(changes, words):
    assert words in flat(render_sweep(report_of(swept(**changes)), width=90))


def test_noise_truncation_and_elements_are_said():
    text = flat(render_sweep(report_of(swept()), width=90))
    assert (
        "noise 2.2e-16, 1.2 times that of rounding the outputs once (difference table at spacing "
        "2.8e-14)"
    ) in text
    assert "truncation 2.0e+00 h^2, seen at steps 3.1e-05 to 5.0e-01; noise floor" in text
    assert (
        "single elements: an error of 3e-6 of the median one would have been seen; none of 12 "
        "could be set to zero unnoticed"
    ) in text
    changes = {"noise_level": None, "curvature": None, "elements_seen": 7, "left_out": ["x", "y"]}
    text = flat(render_sweep(report_of(swept(**changes)), width=90))
    assert "noise 1.5 times that of rounding the outputs once (scatter of the finest steps)" in text
    assert "truncation: none seen at any step" in text
    assert "5 of 12 could be set to zero unnoticed" in text
    assert "not measured because the op is too slow: x, y" in text


def test_every_measurement_has_a_row(page):
    text = render_sweep(report_of(swept(plateau=0.3)), width=80)
    assert table_under(text, "measured", "by") == page


def test_several_inputs_and_dtypes_are_compared_at_the_end(page):
    report = report_of(swept(), swept("weight", 0.3, dtype="float32", resolution=None))
    assert table_under(render_sweep(report, width=90), "input", "dtype") == page
    alone = render_sweep(report_of(swept()), width=90)
    assert "one element" not in alone


def test_steps_without_a_value_are_shown_as_such():
    taken = steps()
    taken[0] = SweepStep(taken[0].h, "not finite")
    taken[1] = SweepStep(taken[1].h, "raised")
    taken[-1] = SweepStep(taken[-1].h, "no change", None, 5.0, 5.0, 1e-20, 1e3)
    text = render_sweep(report_of(swept(steps=taken)), width=80)
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "e-" in line[:12]}
    assert rows["5.0e-01"] == ["-", "-", "-", "not", "finite"]
    assert rows["1.2e-01"][-1] == "raised"
    assert rows["2.8e-14"][-2:] == ["no", "change"]
    assert "the function is not finite at 1 step, 5.0e-01 to 5.0e-01" in flat(text)


def test_errors_and_notes_stand_below_the_target():
    report = report_of(error="forward raised ValueError: [5] is bad\n`gradlint check` says more")
    text = flat(render_sweep(report, width=80))
    assert text.startswith("error ops.py:Op")
    assert "forward raised ValueError: [5] is bad" in text
    assert "Nothing was swept." in text


@pytest.mark.parametrize(
    ("verdicts", "error", "verdict", "code"),
    [
        (["agrees"], "", "pass", 0),
        (["agrees", "differs"], "", "fail", 1),
        (["agrees", "cannot tell"], "", "inconclusive", 0),
        (["surrogate"], "", "pass", 0),
        (["empty"], "", "skipped", 5),
        ([], "", "skipped", 5),
        ([], "raised", "error", 1),
        (["empty", "agrees"], "", "pass", 0),
    ],
)
def test_verdicts_and_exit_codes(verdicts, error, verdict, code):
    report = report_of(*(swept(verdict=word) for word in verdicts), error=error)
    assert report.targets[0].verdict == verdict
    assert report.exit_code == code
    assert report.ok == (code == 0)
    assert SweepReport().exit_code == 5


def test_json_holds_everything_finite():
    item = swept(plateau=0.3, resolution=math.inf)
    found = json.loads(render_sweep(report_of(item), "json"))
    assert found["schema_version"] == 1
    assert found["seed"] == 8315
    (target,) = found["targets"]
    assert (target["target"], target["verdict"]) == ("ops.py:Op", "fail")
    (entry,) = target["inputs"]
    assert entry["resolution"] == "inf"
    assert entry["message"].startswith("the error stops at 3.0e-01")
    assert entry["chosen_step"] == CHOSEN
    assert [step["h"] for step in entry["steps"] if step["chosen"]] == [CHOSEN]
    assert set(entry["steps"][0]) == {
        *("h", "state", "numeric", "claimed", "error", "truncation", "roundoff"),
        *("limit", "chosen"),
    }
    assert entry["floor"] == pytest.approx(item.floor)
    assert [one["method"] for one in entry["measurements"]] == [
        *("extrapolation", "window fit", "path integral"),
    ]
    assert entry["measurements"][1]["largest"] == 1.3e-3
    assert (entry["noise_roundings"], entry["elements_seen"]) == (1.2, 12)


def test_the_report_shows_itself():
    report = report_of(swept("x<b>"))
    assert "x<b>" in str(report)
    assert "x&lt;b&gt;" in report._repr_html_()
    assert "<b>" not in report._repr_html_()
    assert [item.name for item in report.inputs] == ["x<b>"]


# -- plots ---------------------------------------------------------------------------------------


def test_curves_are_those_of_the_table():
    found = curves(swept(plateau=0.3))
    assert set(found) == set(MARKS)
    assert len(found["error"]) == 23
    assert found["chosen"] == [(CHOSEN, pytest.approx(0.3, rel=1e-3))]
    assert {y for _, y in found["floor"]} == {swept().floor}
    low, high = limits(found)
    assert low < swept().floor < 0.3 < high


def test_the_terminal_plot_shows_both_branches_floor_and_chosen_step():
    pytest.importorskip("plotext")
    lines = terminal_plot(swept(), 80)
    body = lines[1:-3]
    for mark in MARKS.values():
        assert any(mark in line for line in body), mark
    # Roundoff falls from the left, truncation rises to the right.
    dots = [line.index(".") for line in body if "." in line[8:-1]]
    colons = [line.index(":") for line in body if ":" in line]
    assert dots == sorted(dots, reverse=True)
    assert colons == sorted(colons)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_the_terminal_plot_fits_and_can_be_ascii(width):
    pytest.importorskip("plotext")
    lines = terminal_plot(swept(plateau=0.3), width, ascii=True)
    assert all(line.isascii() for line in lines)
    assert max(len(line) for line in lines) <= max(24, min(width, 96))
    assert 15 <= len(lines) <= 24


def test_a_plot_of_exact_agreement_stands_on_the_lower_edge():
    pytest.importorskip("plotext")
    exact = [SweepStep(s.h, "ok", 5.0, 5.0, 0.0, None, s.roundoff, "roundoff") for s in steps()]
    lines = terminal_plot(swept(steps=exact), 80)
    bottom = [line for line in lines if "│" in line or "┤" in line][-1]
    assert bottom.count("*") >= 20


@pytest.mark.parametrize("values", [[], [SweepStep(0.5, "raised")]])
def test_nothing_is_plotted_where_there_is_nothing(values):
    assert terminal_plot(swept(steps=values), 80) == []


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make importing ``name`` fail as if it were not installed."""
    for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    find = importlib.util.find_spec

    def nowhere(wanted: str, package: str | None = None):  # type: ignore[no-untyped-def]
        return None if wanted.partition(".")[0] == name else find(wanted, package)

    monkeypatch.setattr(importlib.util, "find_spec", nowhere)


def test_without_plotext_the_table_stands_and_the_extra_is_named(monkeypatch):
    without(monkeypatch, "plotext")
    text = render_sweep(report_of(swept()), width=80)
    assert "truncation, chosen" in text
    assert "O chosen step" not in text
    assert INSTALL_PLOT in flat(text)
    assert INSTALL_PLOT == "pip install 'gradlint[plot]'"


@pytest.mark.parametrize(
    ("suffix", "start"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")],
)
def test_plots_into_files(suffix, start, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"sweep.{suffix}"
    check_plot(str(path))
    save_plot(report_of(swept("x$1$"), swept("w_{", plateau=0.3)), str(path))
    assert path.read_bytes().startswith(start)


def test_an_svg_holds_the_words(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "sweep.svg"
    save_plot(report_of(swept(plateau=0.3)), str(path))
    text = path.read_text()
    for words in ("truncation", "roundoff", "noise floor", "chosen step"):
        assert words in text, words


def test_unknown_suffixes_are_refused():
    for name in ("plot.gif", "plot", "plot.txt", ".png/x"):
        with pytest.raises(GradlintError, match="does not say which kind of plot") as caught:
            check_plot(name)
        assert caught.value.exit_code == 2
        assert ".png, .svg or .pdf" in caught.value.hint


def test_without_matplotlib_the_pip_line_is_given(monkeypatch):
    without(monkeypatch, "matplotlib")
    with pytest.raises(GradlintError, match="need matplotlib") as caught:
        check_plot("plot.png")
    assert (caught.value.exit_code, caught.value.hint) == (2, INSTALL_PLOT)


def test_a_file_that_can_not_be_written_is_said(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(GradlintError, match="can't be written"):
        save_plot(report_of(swept()), str(tmp_path / "nowhere" / "plot.png"))
