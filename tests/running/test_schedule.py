"""Time-outs are of the worker's time, not of time in which everything stood still."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from gradlint.running import _schedule

TIMEOUT = 60.0


class Simulated:
    """A worker that says nothing, and a clock that goes on while it is waited for.

    Args:
        late: seconds by which each wait comes back late, one after the other; then the worker ends.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *late: float) -> None:
        self.now, self.late = 0.0, list(late)
        self.killed: list[str] = []
        self.ending: Any = None
        monkeypatch.setattr(_schedule, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(_schedule, "wait", self.wait)
        monkeypatch.setattr(_schedule._server, "LOOK_SECONDS", 2 * TIMEOUT)
        monkeypatch.setattr(_schedule, "Worker", lambda job, timeout: self)
        self.grant()

    def grant(self) -> None:
        self.deadline = self.now + TIMEOUT

    def wait(self, objects: list[Any], patience: float) -> None:
        if self.late:
            self.now += patience + self.late.pop(0)
        else:
            self.ending = SimpleNamespace(lost=False, killed=None)

    def overdue(self) -> bool:
        return self.ending is None and self.now > self.deadline

    def kill(self, why: str) -> None:
        self.killed.append(why)
        self.ending = SimpleNamespace(lost=False, killed=why)

    def waitables(self) -> list[Any]:
        return []

    def pump(self) -> list[tuple[str, Any]]:
        return []

    def run(self) -> list[str]:
        """Why it was killed; empty where it ended by itself."""
        ended: Callable[[Any], list[Any]] = lambda ending: []  # noqa: E731
        task: Any = MagicMock(timeout=TIMEOUT, until=math.inf, ended=ended)
        _schedule.schedule([task], 1)
        return self.killed


def test_a_worker_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Simulated(monkeypatch, 0.0).run() == ["timeout"]


def test_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Simulated(monkeypatch, 0.5).run() == ["timeout"]


def test_while_everything_is_stopped_no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Simulated(monkeypatch, 1000.0).run() == []


def test_what_hangs_after_a_stop_is_killed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Simulated(monkeypatch, 1000.0, 0.0).run() == ["timeout"]
