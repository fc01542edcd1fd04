"""A forward that changes in place what it saved. Near it: one that changes it before it saves it,
one that means backward to read what it is then, and one with another fault besides."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.examine import examine
from gradlint.model.events import Found
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def draw(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def findings(op: type[Function], dtype: torch.dtype = torch.float64) -> list[Finding]:
    events = []
    x, w = draw(4, 3).to(dtype), (1.5 + draw(3).abs()).to(dtype)
    sample = Sample("s", "given", (x.requires_grad_(), w.requires_grad_()))
    settings = Settings(seed=1, select=("GL401",))
    examine(from_object(op), [sample], settings, events.append)
    return [event.finding for event in events if isinstance(event, Found)]


class Late(Function):
    """w tanh(x)."""

    @staticmethod
    def forward(ctx, x, w):
        y = x.tanh()
        ctx.save_for_backward(y, w)
        return y.mul_(w)

    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return g * w * (1 - y * y), (g * y).sum(0)


class LateThroughView(Late):
    """The same: what is changed is a view of what was saved."""

    @staticmethod
    def forward(ctx, x, w):
        y = x.tanh()
        ctx.save_for_backward(y, w)
        y.view(-1, 3).mul_(w)
        return y


class Before(Late):
    """Changes it first, then saves it, and backward takes it for w tanh(x): right."""

    @staticmethod
    def forward(ctx, x, w):
        y = x.tanh()
        y.mul_(w)
        ctx.save_for_backward(y, w)
        return y

    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        t = y / w
        return g * w * (1 - t * t), (g * t).sum(0)


class Meant(Before):
    """Saves it, then changes it, and backward means what it is then: right."""

    @staticmethod
    def forward(ctx, x, w):
        y = x.tanh()
        ctx.save_for_backward(y, w)
        return y.mul_(w)


class MeantAndWrong(Meant):
    """The same, but for a factor: saving something else does not mend it."""

    @staticmethod
    def backward(ctx, g):
        of_x, of_w = Before.backward(ctx, g)
        return 1.5 * of_x, of_w


class LateAndWrong(Late):
    """Changes it after it saved it, and has another factor too."""

    @staticmethod
    def backward(ctx, g):
        of_x, of_w = Late.backward(ctx, g)
        return 1.5 * of_x, 1.5 * of_w


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("op", [Late, LateThroughView])
def test_it_is_the_cause(op: type[Function], dtype: torch.dtype):
    found = findings(op, dtype)
    assert {item.input for item in found} == {"x", "w"}
    for item in found:
        assert (item.cause, item.severity) == ("saved-then-changed", "error")
        assert "forward saves `y` for backward and then changes it in place" in item.cause_text
    written = "y.mul_(w)" if op is Late else "y.view(-1, 3).mul_(w)"
    lines = Path(__file__).read_text().splitlines()
    named = int(found[0].cause_text.split("(line ")[1].split(")")[0])
    assert written in lines[named - 1]


@pytest.mark.parametrize("op", [Before, Meant])
def test_right_ones_pass(op: type[Function]):
    assert findings(op) == []


@pytest.mark.parametrize("op", [MeantAndWrong, LateAndWrong])
def test_what_it_does_not_mend_has_another_cause(op: type[Function]):
    found = findings(op)
    assert found
    assert "saved-then-changed" not in {item.cause for item in found}
