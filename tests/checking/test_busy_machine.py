"""What is judged doesn't depend on how busy the machine is: waiting for a processor costs nothing.

On a clock of the test's own, that goes on in forward.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import gradlint
from gradlint.base import clock
from gradlint.inputs import _search
from gradlint.model.report import TargetReport
from gradlint.numerics.timing import least_seconds
from gradlint.targets.build import from_object


class Busy:
    """A clock: ``now`` is what the wall shows, ``queued`` what of it the process has waited for a
    processor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.queued = 0.0
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(clock, "queued_seconds", lambda _: self.queued)

    def wait(self, seconds: float, *, works: bool) -> None:
        """Let ``seconds`` pass, at work or in the queue."""
        self.now += seconds
        self.queued += 0.0 if works else seconds


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    return Busy(monkeypatch)


@pytest.mark.parametrize(("works", "seconds"), [(True, 2.0), (False, 0.0)])
def test_a_call_takes_what_it_works(busy: Busy, works: bool, seconds: float) -> None:
    took = least_seconds(lambda: busy.wait(2.0, works=works), 0.1)
    assert took == pytest.approx(seconds)


def _checked(busy: Busy, *, works: bool) -> TargetReport:
    class Scale(torch.autograd.Function):
        """x * a: a call takes two seconds."""

        @staticmethod
        def forward(ctx: Any, x: Tensor, a: Tensor) -> Tensor:
            busy.wait(2.0, works=works)
            ctx.save_for_backward(x, a)
            return x * a

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
            x, a = ctx.saved_tensors
            return grad * a, grad * x

    given = tuple(torch.rand(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    report = gradlint.check(Scale, [given], seed=0, select=["GL401"])
    (target,) = report.targets
    return target


def test_no_pair_is_left_out_because_others_use_the_machine(busy: Busy) -> None:
    (check,) = _checked(busy, works=False).checks
    assert (check.verdict, check.note) == ("pass", "")
    assert check.pairs == check.pairs_usual


def test_pairs_are_left_out_where_calls_are_slow(busy: Busy) -> None:
    (check,) = _checked(busy, works=True).checks
    assert "a call takes" in check.note
    assert check.pairs is not None
    assert check.pairs_usual is not None
    assert check.pairs < check.pairs_usual


@pytest.mark.parametrize("works", [True, False])
def test_the_search_for_inputs_has_the_same_time(busy: Busy, works: bool) -> None:
    search = _search.Search(from_object(torch.square, name="square"), [], {}, 0)
    assert not search.out_of_time
    busy.wait(2 * _search.PATIENT_SECONDS, works=works)
    assert search.out_of_time == works
