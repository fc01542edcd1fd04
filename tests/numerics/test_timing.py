"""Calls are timed on machines that stall now and then."""

from __future__ import annotations

import pytest

from gradlint.numerics import timing as _timing
from gradlint.numerics.timing import TIMES, least_seconds


class Called:
    """A call that takes the given seconds, one after the other, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.now, self.seconds = 0.0, list(seconds)
        monkeypatch.setattr(_timing, "had_seconds", lambda: self.now)

    def __call__(self) -> None:
        self.now += self.seconds.pop(0)


def test_a_stall_is_not_taken_for_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Called(monkeypatch, 0.5, 0.5, 0.001)
    assert least_seconds(call, 0.01) == pytest.approx(0.001)


def test_what_is_quick_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Called(monkeypatch, 0.001, 0.0)
    assert least_seconds(call, 0.01) == pytest.approx(0.001)
    assert call.seconds == [0.0]
    assert least_seconds(call, 0.01, known=0.002) == 0.002
    assert call.seconds == [0.0]


def test_what_is_slow_is_called_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Called(monkeypatch, *[0.5] * 10)
    assert least_seconds(call, 0.01) == pytest.approx(0.5)
    assert len(call.seconds) == 10 - TIMES


def test_what_is_very_slow_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Called(monkeypatch, 30.0, 0.0)
    assert least_seconds(call, 0.01, most=1.0) == pytest.approx(30.0)
    assert least_seconds(call, 0.01, known=30.0, most=1.0) == 30.0
    assert call.seconds == [0.0]
