"""All rules on the Functions that PyTorch tests its own autograd with: silent, but on the wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.inputs._infer import infer
from gradlint.model.events import CheckDone, Found
from gradlint.model.report import Check, Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

database = pytest.importorskip("torch.testing._internal.autograd_function_db")

#: Function → the generator of its samples.
SAMPLES = {
    "CubeGenVmap": "numpy_cube",
    "ForwardHasDefaultArgs": "forward_default_args",
    "MulGenVmap": "numpy_mul",
    "NumpyCube": "numpy_cube",
    "NumpyCubeNotComposable": "numpy_cube",
    "NumpyExp_": "numpy_cube",
    "NumpyMul": "numpy_mul",
    "NumpySort": "numpy_sort",
    "NumpyTake": "numpy_take",
    "ScaleGradGenVmap": "numpy_cube",
    "Select": "select",
    "SelectGenVmap": "select",
    "SortGenVmap": "numpy_sort",
    "TakeGenVmap": "numpy_take",
    "ZeroGradientsGenVmap": "numpy_mul",
}

Told = set[tuple["str | None", ...]]

#: What is wrong: (code, severity, cause, input, output).
WRONG: dict[str, Told] = {
    # backward adds 6·dinput where 6·grad_saved·x belongs: it is not linear in what it receives.
    "CubeGenVmap": {("GL401", "error", "not-linear", "x", None)},
    # backward returns 3x² and never looks at grad_output.
    "NumpyCubeNotComposable": {("GL401", "error", "ignores-grad-output", "input", None)},
    # A gradient of its own of an op that returns its input may be meant: a warning.
    # forward calls argsort but returns x as it came; backward and jvp permute as if it were sorted.
    "NumpySort": {("GL401", "warning", None, "x", None), ("GL403", "warning", None, "x", None)},
    # The identity with 3.14 times its derivative, in both modes.
    "ScaleGradGenVmap": {
        ("GL401", "warning", "scaled", "x", None),
        ("GL403", "warning", "scaled", "x", None),
    },
    # Copies with zeros for derivatives, in both modes.
    "ZeroGradientsGenVmap": {
        (code, severity, "zero", name, output)
        for code, severity in (("GL401", "warning"), ("GL403", "warning"))
        for name, output in (("x", "output[0]"), ("y", "output[1]"))
    },
}


def functions() -> Iterator[type]:
    for thing in vars(database).values():
        if isinstance(thing, type) and issubclass(thing, torch.autograd.Function):
            yield thing


def given(name: str) -> list[Sample]:
    make: Callable[..., Any] = getattr(database, f"sample_inputs_{SAMPLES[name]}")
    torch.manual_seed(0)
    found = make(None, "cpu", torch.float64, requires_grad=True)
    return [Sample("s", "database", (one.input, *one.args), dict(one.kwargs)) for one in found]


def examined(
    function: type, samples: list[Sample], ignore: tuple[str, ...] = ()
) -> tuple[list[Finding], list[Check]]:
    events: list[Any] = []
    settings = Settings(seed=1, ignore=ignore)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examine(from_object(function), samples, settings, events.append)
    return (
        [event.finding for event in events if isinstance(event, Found)],
        [event.check for event in events if isinstance(event, CheckDone)],
    )


def told(findings: list[Finding]) -> Told:
    return {
        (one.code, one.severity, one.cause, one.input, one.output)
        for one in findings
        if one.severity != "info"
    }


def test_every_function_has_samples_here() -> None:
    assert {function.__name__ for function in functions()} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_on_the_samples_of_the_database(name: str) -> None:
    findings, checks = examined(getattr(database, name), given(name))
    assert told(findings) == WRONG.get(name, set())
    assert [check.code for check in checks if check.verdict == "inconclusive"] == []
    assert sum(check.verdict == "pass" for check in checks) >= 30


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - WRONG.keys()))
def test_on_inferred_samples(name: str) -> None:
    function = getattr(database, name)
    findings, checks = examined(function, infer(from_object(function))[:1], ("GL903", "GL905"))
    assert told(findings) == set()
    assert sum(check.verdict == "pass" for check in checks) >= 35


def test_gradients_too_large_by_axes_in_front_are_information() -> None:
    findings, _ = examined(database.ZeroGradientsGenVmap, given("ZeroGradientsGenVmap"), ("GL9",))
    (summed,) = [one for one in findings if one.code == "GL202"]
    assert (summed.severity, summed.input) == ("info", "x")
    assert summed.message == "gradient for `x` has shape [3, 4, 4] and is summed to [4]"
