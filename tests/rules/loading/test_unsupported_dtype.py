"""A dtype that forward refuses: information where it was wished for, an error where promised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.examine import examine
from gradlint.model.events import CheckDone, Event, Found, Skip
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

WISHED = Settings(order=1, dtypes=("bfloat16", "float16", "float32"))


class Inverse(Function):
    """A factorisation, which PyTorch has in float32 and float64."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        inverse = torch.linalg.inv(a)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -inverse.mT @ g @ inverse.mT


class WrongInverse(Inverse):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -inverse @ g @ inverse


class RefusesAll(Inverse):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        raise RuntimeError("Unsupported dtype")


def events_of(op: Any, settings: Settings, **declared: Any) -> list[Event]:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(3, 3, generator=generator, dtype=torch.float64) + 3 * torch.eye(3)
    events: list[Event] = []
    bound = from_object(op)
    for name, value in declared.items():
        setattr(bound, name, value)
    examine(bound, [Sample("s", "given", (a.requires_grad_(),))], settings, events.append)
    return events


def findings(events: list[Event]) -> list[Finding]:
    return [event.finding for event in events if isinstance(event, Found)]


def verdicts(events: list[Event], sample: str) -> set[str]:
    found = [event.check for event in events if isinstance(event, CheckDone)]
    return {check.verdict for check in found if check.sample == f"s [{sample}]"}


def test_a_wish_is_said_once_for_each_dtype_and_checks_nothing() -> None:
    events = events_of(Inverse, WISHED)
    told = [item for item in findings(events) if item.code == "GL003"]
    assert [item.severity for item in told] == ["info", "info"]
    assert [item.evidence["dtype"] for item in told] == ["bfloat16", "float16"]
    assert told[0].message == (
        "not supported in bfloat16: RuntimeError: linalg.inv: Low precision dtypes not "
        "supported. Got BFloat16"
    )
    assert {item.severity for item in findings(events)} == {"info"}
    assert verdicts(events, "bfloat16") == verdicts(events, "float16") == {"skipped"}


def test_what_looks_at_one_sample_looks_at_the_first_that_runs() -> None:
    events = events_of(Inverse, WISHED)
    assert "pass" in verdicts(events, "float32")
    done = [event.check for event in events if isinstance(event, CheckDone)]
    (sizes,) = [check for check in done if check.code == "GL706" and "float32" in check.sample]
    assert sizes.verdict == "pass"
    assert not [event for event in events if isinstance(event, Skip) and event.code == "GL706"]


def test_what_is_wrong_in_another_dtype_is_found() -> None:
    found = findings(events_of(WrongInverse, WISHED))
    assert [item.sample for item in found if item.code == "GL401"] == ["s [float32]"]


def promises() -> list[tuple[Settings, dict[str, Any]]]:
    return [
        (replace(WISHED, promised_dtypes=("bfloat16",)), {}),
        (WISHED, {"dtypes": ("bfloat16",)}),
        (replace(WISHED, dtypes=None), {"dtypes": ("float32", "bfloat16")}),
    ]


@pytest.mark.parametrize(("settings", "declared"), promises())
def test_a_promise_fails(settings: Settings, declared: dict[str, Any]) -> None:
    found = findings(events_of(Inverse, settings, **declared))
    errors = [item for item in found if item.severity == "error"]
    assert [(item.code, item.sample) for item in errors] == [("GL003", "s [bfloat16]")]
    assert errors[0].message.startswith("forward raised RuntimeError: linalg.inv: Low precision")


def test_an_op_that_runs_in_no_dtype_fails() -> None:
    found = findings(events_of(RefusesAll, WISHED))
    assert [(item.code, item.severity) for item in found] == [("GL003", "error")]


class Halves(Function):
    """Forward takes bfloat16; backward factorises, and PyTorch refuses that there."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return torch.linalg.inv(a.to(torch.promote_types(a.dtype, torch.float32))).to(a.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (a,) = ctx.saved_tensors
        inverse = torch.linalg.inv(a)
        return -inverse.mT @ g @ inverse.mT


class Trips(Halves):
    """Backward fails in bfloat16 for a reason of its own."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (a,) = ctx.saved_tensors
        inverse = torch.linalg.inv(a.to(torch.float32))
        return -inverse.mT @ g.reshape(-1, 2) @ inverse.mT


@pytest.mark.parametrize(("op", "severity"), [(Halves, "info"), (Trips, "error")])
def test_backward_has_to_say_that_it_lacks_the_dtype(op: Any, severity: str) -> None:
    found = findings(events_of(op, replace(WISHED, dtypes=("float32", "bfloat16"))))
    told = [item for item in found if item.code == "GL004"]
    assert {item.severity for item in told} == {severity}
