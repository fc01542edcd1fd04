"""Reports that the tests of the renderers share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradlint.model.report import (
    Argument,
    Check,
    Excerpt,
    Finding,
    InputPower,
    Location,
    Prediction,
    Report,
    SampleReport,
    TargetReport,
    TensorFacts,
    TorchVerdict,
    Tried,
)


def _wrong_gradient() -> Finding:
    """The finding that DESIGN shows as the mark to reach."""
    return Finding(
        code="GL401",
        name="wrong_gradient",
        severity="error",
        message="wrong gradient for `weight`",
        cause="transposed",
        cause_text="transposed: taken as .mT it agrees to 2e-10",
        input="weight",
        location=Location("examples/wrong/linear.py", 31, 41, 31, 59),
        excerpt=Excerpt(
            (
                (29, "    def backward(ctx, grad_output):"),
                (30, "        x, weight = ctx.saved_tensors"),
                (31, "        return grad_output @ weight.mT, grad_output.mT @ x"),
            ),
            "returned for `weight`",
        ),
        evidence={
            "directions": 16,
            "worst_z": 4.1e7,
            "critical_z": 6.5,
            "relative_error": 1.5,
            "resolution": 4e-9,
            "differing": 16,
            "measured_elements": 16,
            "numel": 16,
            "elements": [
                {"index": [0, 3], "returned": -0.812041, "measured": 1.334902, "error": 2.147},
                {"index": [2, 1], "returned": 0.44231, "measured": -0.998127, "error": 1.4404},
            ],
        },
        help="return x.mT @ grad_output for `weight`",
        sample="inferred",
        seed=8315,
        reproduce="gradlint check examples/wrong/linear.py:SquareWeight --select GL401 --seed 8315",
    )


def _arguments() -> list[Argument]:
    return [
        Argument("x", [4, 3], "float64", "cpu", [3, 1], True),
        Argument("weight", [4, 4], "float64", "cpu", [4, 1], True),
        Argument("dim", value="-1"),
    ]


@pytest.fixture
def failing_target() -> TargetReport:
    return TargetReport(
        "examples/wrong/linear.py:SquareWeight",
        "function",
        "fail",
        [SampleReport("inferred", "inferred", _arguments(), ["x: all reals"])],
        [
            Check("GL101", "pass", "inferred", forward_calls=1, backward_calls=1, duration_s=0.002),
            Check("GL401", "fail", "inferred", 3e-10, 14, 15, 0.25),
            Check("GL501", "pass", "inferred", 3e-10, 4, 8, 0.02),
            Check("GL802", "skipped", "inferred", note="cuda is not available here"),
        ],
        [_wrong_gradient()],
        TorchVerdict("slow", "fail", "Jacobian mismatch for output 0", "agrees"),
        TorchVerdict("slow", "pass", "", "agrees"),
        [
            TensorFacts("argument", "x", [4, 3], "float64", [3, 1], 0, 0, -1.5, 2.25, 4.5, 96),
            TensorFacts("gradient", "x", [4, 3], "float64", [3, 1], 1, 2, -0.5, 1.0, 2.0, 96),
            TensorFacts("saved", "weight", [4, 4], "float64", [4, 1], 0, 0, -1.0, 1.0, 3.0, 4096),
        ],
        duration_s=0.31,
    )


@pytest.fixture
def passing_target() -> TargetReport:
    return TargetReport(
        "examples/right/square.py:Square",
        "function",
        "pass",
        [SampleReport("inferred", "inferred", _arguments()[:1])],
        [Check("GL401", "pass", "inferred", 2e-9), Check("GL501", "pass", "inferred", 1e-8)],
        [],
        TorchVerdict("slow", "pass", "", "agrees"),
        TorchVerdict("slow", "pass", "", "agrees"),
    )


@pytest.fixture
def report(passing_target: TargetReport, failing_target: TargetReport) -> Report:
    """One target that passes, one that fails, and a file left out."""
    return Report(
        [passing_target, failing_target],
        seed=8315,
        environment={"torch": "2.13.0"},
        gradlint="0.1.0",
        duration_s=1.25,
        skipped={"examples/empty.py": "holds no operator"},
    )


@pytest.fixture
def every_verdict(report: Report) -> Report:
    """A target of each verdict, and findings of each severity with and without a place."""
    crash = Finding("GL005", "process_crashed", "error", "forward crashed: SIGSEGV", sample="spec")
    nan = Finding(
        "GL302",
        "nan_in_backward",
        "warning",
        "gradient for `x` is NaN at [2], where the function has a finite derivative",
        input="x",
        index=[2],
        location=Location("examples/wrong/not_finite.py", 31, 16),
        evidence={"elements": [{"index": [2], "returned": float("nan"), "measured": 0.5}]},
        sample="inferred",
    )
    once = Finding("GL503", "once_differentiable", "info", "second derivatives are refused")
    follows = Finding(
        "GL702", "wrong_for_expanded", "error", "wrong for an expanded x", follows="GL302"
    )
    report.targets += [
        TargetReport("pkg.ops:Crash", "function", "error", findings=[crash]),
        TargetReport(
            "examples/wrong/not_finite.py:Sinc",
            "function",
            "fail",
            [
                SampleReport(
                    "inferred", "inferred", [Argument("x", [5], "float64", "cpu", [1], True)]
                )
            ],
            [Check("GL302", "fail", "inferred"), Check("GL702", "fail", "inferred")],
            [nan, follows, once],
        ),
        TargetReport(
            "torch.ops.lib.noisy",
            "op",
            "inconclusive",
            checks=[Check("GL401", "inconclusive", "spec", note="too noisy", help="use float64")],
        ),
        TargetReport("pkg.ops:Absent", verdict="skipped", notes=["needs cuda, not available here"]),
    ]
    return report


@pytest.fixture
def hostile() -> Callable[[str], Report]:
    """Makes a report in which a text stands wherever a user's text can stand."""

    def make(text: str) -> Report:
        finding = Finding(
            code="GL003",
            name="forward_raised",
            severity="error",
            message=text,
            cause_text=text,
            output=text,
            location=Location(text, 3, 1),
            excerpt=Excerpt(((3, text),), text),
            related=[Location(text, 99, 1)],
            evidence={
                "measured": text,
                "elements": [{"index": [5], "returned": text, "measured": 1.0, "error": text}],
                "original": text,
                "traceback": [text],
                "output_tail": [text, text],
                "words": {"key": text},
                "list": [text],
                "records": [{"a": text}],
            },
            help=text,
            sample=text,
            reproduce=text,
        )
        target = TargetReport(
            text,
            text,
            "fail",
            [
                SampleReport(
                    text, text, [Argument(text, value=text), Argument(text, [1], text)], [text]
                )
            ],
            [
                Check(
                    *("GL003", "inconclusive", text),
                    note=text,
                    inputs=[InputPower(text, "agrees", 1e-9, float("inf"), float("nan"))],
                    help=text,
                ),
                Check("GL401", "skipped", note=text),
            ],
            [finding],
            TorchVerdict("slow", "fail", text, text),
            TorchVerdict("fast", "skipped", text),
            [TensorFacts("saved", text, [1], text, [1], text=text)],
            [text],
            predicted=[Prediction(text, "GL4", 40, 9, 30, 7, 0.01, 4096)],
            tried=[Tried(text, text, 3, 1, 0.01)],
        )
        passing = TargetReport(text, "function", "pass", target.samples)
        return Report([passing, target], skipped={text: text})

    return make
