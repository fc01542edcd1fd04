"""An operator that runs, but not beside the copies that a check makes of what it holds."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.experiments.judge_at_other_inputs import RAISED, judge_at_other_inputs
from gradlint.experiments.judge_at_other_inputs import REFUSED as REFUSED_THERE
from gradlint.experiments.subject import Subject
from gradlint.model.report import MEMORY_RAN_OUT, Check, Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

REFUSED = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate {bytes} bytes. Error code 12 (Cannot allocate memory)"
)

#: Bytes of the input below.
GIVEN = 12 * 8


class Refused(Function):
    """Is refused memory where its input is not contiguous."""

    bytes = 0

    @staticmethod
    def forward(ctx, x):
        if not x.is_contiguous():
            raise RuntimeError(REFUSED.format(bytes=Refused.bytes))
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class RefusedBackward(Refused):
    """Is refused it in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.refused = not x.is_contiguous()
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.refused:
            raise RuntimeError(REFUSED.format(bytes=Refused.bytes))
        return 2 * grad_output


def checked(
    op: type[Function], refused: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Check, list[Finding]]:
    monkeypatch.setattr(Refused, "bytes", refused)
    x = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
    report = gradlint.check(op, [(x,)], seed=0, order=1, select=("GL703",))
    (check,) = (item for item in report.targets[0].checks if item.code == "GL703")
    return check, report.targets[0].findings


@pytest.mark.parametrize("op", [Refused, RefusedBackward])
@pytest.mark.parametrize("refused", [8, GIVEN])
def test_no_more_than_it_was_given(
    op: type[Function], refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, findings = checked(op, refused, monkeypatch)
    assert check.verdict == "inconclusive"
    assert findings == []
    assert MEMORY_RAN_OUT in check.note


@pytest.mark.parametrize("op", [Refused, RefusedBackward])
def test_a_single_large_allocation_is_the_operators_own(
    op: type[Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    check, findings = checked(op, GIVEN + 1, monkeypatch)
    assert check.verdict == "fail"
    assert "can't allocate memory" in findings[0].cause_text


class RefusedElsewhere(RefusedBackward):
    """Is refused it where a number is above one."""

    @staticmethod
    def forward(ctx, x):
        ctx.refused = bool((x > 1).any())
        return 2 * x


@pytest.mark.parametrize(("refused", "verdict"), [(8, REFUSED_THERE), (GIVEN + 1, RAISED)])
def test_at_inputs_that_a_check_chose(
    refused: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refused, "bytes", refused)
    x = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(3, 4)
    here, beyond = (
        Sample(label, "given", (value.requires_grad_(),))
        for label, value in (("here", x), ("beyond", 3 * x))
    )
    subject = Subject(from_object(RefusedElsewhere), here, Settings(seed=0))
    assert judge_at_other_inputs(subject, beyond).verdict == verdict
