"""Time that a process had."""

from __future__ import annotations

import os

import pytest

from gradlint.base import clock


def test_what_the_system_tells_of_waiting() -> None:
    before = clock.queued_seconds(os.getpid())
    assert 0.0 <= before <= clock.queued_seconds(os.getpid())
    assert clock.queued_seconds(None) == 0.0


def test_waiting_for_a_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now, queued = [100.0], [7.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(clock, "queued_seconds", lambda pid: queued[0] if pid == "self" else 0.0)
    began = clock.had_seconds()
    now[0], queued[0] = 110.0, 16.5
    assert clock.had_seconds() - began == 0.5
    now[0] = 112.0  # it slept
    assert clock.had_seconds() - began == 2.5


def test_a_wait_between_the_readings_is_not_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    now, queued = [100.0], [7.0]
    set_aside = [0.0]

    def monotonic() -> float:
        told = now[0]
        now[0] += set_aside[0]  # the process waits for a processor just after it has read this
        queued[0] += set_aside[0]
        set_aside[0] = 0.0
        return told

    monkeypatch.setattr(clock.time, "monotonic", monotonic)
    monkeypatch.setattr(clock, "queued_seconds", lambda pid: queued[0])
    set_aside[0] = 0.5
    began = clock.had_seconds()
    now[0] += 0.001  # what is measured
    set_aside[0] = 0.25
    assert clock.had_seconds() - began == pytest.approx(0.001)
