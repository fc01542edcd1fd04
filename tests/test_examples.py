"""Every operator of ``examples/`` gets the verdict of the table below, from one run over all.

The folders in :data:`ELSEWHERE` have tests of their own.

A wrong example carries ``# <- GLxyz`` on the line that a finding of that code must show.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradlint.model.report import Finding, Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import run

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"# <- (GL\d{3})")


@dataclass(frozen=True)
class Case:
    """What one operator must get.

    Args:
        target: below ``examples/``.
        verdict: "pass" or "fail".
        codes: exactly the codes of its findings at severity error or warning.
        info: codes that must be there at severity info.
        inputs: the argument named by each finding is one of these; empty where the fault
            belongs to no argument.
        cause: of every finding that counts.
    """

    target: str
    verdict: str = "pass"
    codes: tuple[str, ...] = ()
    info: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    cause: str | None = None

    def __str__(self) -> str:
        return self.target


def wrong(target: str, code: str, inputs: tuple[str, ...] = (), cause: str | None = None) -> Case:
    return Case(f"wrong/{target}", "fail", (code,), (), inputs, cause)


TABLE = (
    Case("right/elementwise.py:Square"),
    Case("right/elementwise.py:Exp"),
    Case("right/elementwise.py:ScaledSigmoid"),
    Case("right/elementwise.py:MultiplyByConstant"),
    Case("right/two_outputs.py:SquaredRadiusAndProduct"),
    Case("right/linear.py:Linear"),
    Case("right/linear.py:LinearLayer"),
    Case("right/combine.py:ScaledAdd"),
    Case("right/combine.py:WeightedSum"),
    Case("right/combine.py:ScaleInPlace"),
    Case("right/piecewise.py:ClippedRelu"),
    Case("right/piecewise.py:SoftThreshold"),
    Case("right/piecewise.py:AddRelu"),
    Case("right/second_order.py:SquareTwice"),
    Case("right/second_order.py:SquareTwiceBackward"),
    Case("right/second_order.py:SquareOnce", info=("GL503",)),
    Case("right/forward_mode.py:ScaledSine"),
    Case("right/forward_mode.py:SineAndSquare"),
    Case("surrogate/straight_through.py:SignStraightThrough"),
    Case("surrogate/straight_through.py:SignClipped"),
    Case("surrogate/fake_quantize.py:FakeQuantize"),
    wrong("linear.py:OneGradientTooFew", "GL101"),
    wrong("linear.py:SquareWeight", "GL401", ("weight",), "transposed"),
    wrong("elementwise.py:SwappedGradients", "GL401", ("x", "y"), "swapped"),
    wrong("elementwise.py:FactorMissing", "GL401", ("x",), "scaled"),
    wrong("elementwise.py:IgnoresGradOutput", "GL401", ("x",), "ignores-grad-output"),
    wrong("forward_mode.py:ScaledSine", "GL403", ("a",), "zero"),
    wrong("grad_output.py:SineAndSquare", "GL405", (), "undefined-grad-output"),
    wrong("grad_output.py:ClippedExponential", "GL401", ("x",), "not-linear"),
    wrong("surrogate.py:SignWithoutGradient", "GL401", ("x",), "zero"),
    wrong("surrogate.py:GumbelSoftmax", "GL401", ("logits",), "straight-through"),
    wrong("reduction.py:ReluSum", "GL201", ("x",)),
    wrong("external.py:SavesTheModel", "GL003"),
    wrong("external.py:PlaceholderGradient", "GL401", ("stretch",), "zero"),
    wrong("not_finite.py:Sinc", "GL302", ("x",)),
    wrong("not_finite.py:ScaledSigmoid", "GL302", ("x",)),
    wrong("second_order.py:SquareNoGrad", "GL502", ("x",)),
)
WRONG = [case for case in TABLE if case.codes]

FOLDERS = sorted({case.target.partition("/")[0] for case in TABLE})
ELSEWHERE = ["extension", "faulty_kernels", "formulas", "tensor_like", "triton"]


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    """One run over all folders, from the root of the repository as a user would start it."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        yield run([f"examples/{folder}" for folder in FOLDERS], Settings(seed=0))
    finally:
        os.chdir(before)


def entry(report: Report, case: Case) -> TargetReport:
    matches = [each for each in report.targets if each.target == f"examples/{case.target}"]
    assert len(matches) == 1, f"{case.target} stands {len(matches)} times in the report"
    return matches[0]


def counting(report: Report, case: Case) -> list[Finding]:
    return [f for f in entry(report, case).findings if f.severity in ("error", "warning")]


def marked_lines(case: Case, code: str) -> set[int]:
    """Lines of the example's file marked with ``code``, within the op's class."""
    path, name = case.target.split(":")
    lines = (ROOT / "examples" / path).read_text(encoding="utf-8").splitlines()
    found, inside = set(), False
    for number, line in enumerate(lines, 1):
        if line.startswith("class "):
            inside = re.match(rf"class {name}\b", line) is not None
        mark = MARK.search(line)
        if inside and mark and mark.group(1) == code:
            found.add(number)
    return found


def test_every_folder_is_looked_at() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == {*FOLDERS, *ELSEWHERE}


def test_the_table_lists_every_operator_that_the_folders_hold(report: Report) -> None:
    assert sorted(each.target for each in report.targets) == sorted(
        f"examples/{case.target}" for case in TABLE
    )


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_verdict_and_codes(report: Report, case: Case) -> None:
    target = entry(report, case)
    seen = [(f.code, f.severity, f.message) for f in target.findings]
    assert target.verdict == case.verdict, seen
    assert {f.code for f in counting(report, case)} == set(case.codes), seen
    assert set(case.info) <= {f.code for f in target.findings if f.severity == "info"}, seen


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_finding_names_input_and_cause(report: Report, case: Case) -> None:
    for finding in counting(report, case):
        if case.inputs:
            assert finding.input in case.inputs, finding.message
        assert finding.cause == case.cause, finding.message


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_finding_points_at_the_marked_line(report: Report, case: Case) -> None:
    (code,) = case.codes
    expected = marked_lines(case, code)
    assert expected, f"no line of {case.target} is marked with {code}"
    for finding in counting(report, case):
        assert finding.location is not None
        assert finding.location.file == f"examples/{case.target.split(':')[0]}"
        assert finding.location.line in expected


def test_nan_is_pinned_to_its_element(report: Report) -> None:
    (case,) = [case for case in TABLE if case.target.endswith(":Sinc")]
    (finding,) = counting(report, case)
    assert finding.index == [2]


def test_every_right_example_shows_its_resolving_power(report: Report) -> None:
    for case in TABLE:
        if case.verdict == "pass" and not case.target.startswith("surrogate/"):
            checks = [c for c in entry(report, case).checks if c.code == "GL401"]
            assert checks, case.target
            for check in checks:
                assert check.verdict == "pass", case.target
                assert check.resolution is not None, case.target
                assert check.resolution < 1e-4, case.target
