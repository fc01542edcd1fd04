"""Numbers that switch something off where they are zero, and masks of which elements are taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL0", "GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Weighted(Function):
    @staticmethod
    def forward(ctx, x, z=1e-4):
        ctx.save_for_backward(x)
        ctx.z = z
        return x.sin() + z * x.square()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not ctx.z:
            return g * x.cos(), None
        return g * (x.cos() + 2 * ctx.z * x), None


class TooFewWithoutIt(Weighted):
    @staticmethod
    def backward(ctx, g):
        found = Weighted.backward(ctx, g)
        return found if ctx.z else found[:1]


class WrongWithoutIt(Weighted):
    @staticmethod
    def backward(ctx, g):
        found, none = Weighted.backward(ctx, g)
        return (found if ctx.z else 2 * found), none


@pytest.mark.parametrize(
    ("op", "code"), [(Weighted, None), (TooFewWithoutIt, "GL101"), (WrongWithoutIt, "GL401")]
)
def test_a_number_that_is_asked_for_its_truth_is_tried_at_zero(op: Any, code: str | None) -> None:
    report = check(op)
    assert "with z=0.0" in {item.label for item in report.tried}
    found = [item for item in report.findings if item.severity != "info"]
    assert [(item.code, item.sample) for item in found][:1] == (
        [(code, "with z=0.0")] if code else []
    )


class Restarted(Function):
    @staticmethod
    def forward(ctx, x, done):
        h, steps = torch.zeros_like(x[0]), []
        for t in range(len(x)):
            h = 0.5 * h * ~done[t] + x[t]
            steps.append(h)
        ctx.save_for_backward(done)
        return torch.stack(steps)

    @staticmethod
    def backward(ctx, g):
        (done,) = ctx.saved_tensors
        found, carried = [], torch.zeros_like(g[0])
        for t in reversed(range(len(g))):
            carried = carried + g[t]
            found.append(carried)
            carried = 0.5 * carried * ~done[t]
        return torch.stack(found[::-1]), None


def test_elements_of_a_mask_are_masks():
    report = check(Restarted)
    assert report.verdict == "pass"
    (sample, *_) = report.samples
    assert [item.dtype for item in sample.args] == ["float64", "bool"]
