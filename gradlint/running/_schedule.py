"""Keeps a number of workers busy with tasks, and makes sure that none outlives the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from multiprocessing.connection import wait

from gradlint.running._collect import Contradiction
from gradlint.running._process import Worker
from gradlint.running._task import Task
from gradlint.running.events import Forgery

#: Seconds by which waiting may overshoot; a longer overshoot means that this process was suspended
#: (heuristic: with four times as many busy processes as cores it is tenths of a second).
STOPPED_S = 2.0


def schedule(tasks: Iterable[Task], jobs: int) -> None:
    """Run ``tasks``, at most ``jobs`` workers at a time, until all are done.

    Raises:
        KeyboardInterrupt: after every worker was killed and every task has heard of it.
    """
    waiting: deque[Task] = deque(tasks)
    active: dict[Worker, Task] = {}
    try:
        while waiting or active:
            while waiting and len(active) < max(1, jobs):
                task = waiting.popleft()
                active[Worker(task.job(), task.timeout)] = task
            stopped = _wait(active)
            for worker, task in list(active.items()):
                # News first: the parent may have been asleep (Ctrl-Z), the worker was not.
                _deliver(worker, task)
                if stopped:
                    worker.grant()
                if worker.overdue():
                    worker.kill("timeout")
                    _deliver(worker, task)
                if worker.ending is not None:
                    del active[worker]
                    waiting.extendleft(reversed(task.ended(worker.ending)))
    finally:
        for worker, task in active.items():
            _abandon(worker, task)


def _wait(active: dict[Worker, Task]) -> bool:
    """Wait for news. Returns whether the wait overshot by far: this process and its workers were
    stopped, or the machine was asleep."""
    now = time.monotonic()
    soonest = min(worker.deadline for worker in active)
    objects = [thing for worker in active for thing in worker.waitables()]
    patience = None if soonest == float("inf") else max(0.0, soonest - now) + 0.001
    wait(objects, patience)
    return patience is not None and time.monotonic() - now - patience > STOPPED_S


def _deliver(worker: Worker, task: Task) -> None:
    for event in worker.pump():
        try:
            task.event(event)
        except Contradiction as error:
            worker.refuse()
            task.event(Forgery(str(error)))
            break


def _abandon(worker: Worker, task: Task) -> None:
    worker.kill("interrupt")
    _deliver(worker, task)
    assert worker.ending is not None
    task.ended(worker.ending)
