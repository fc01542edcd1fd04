"""Keeps a number of workers busy with tasks, and makes sure that none outlives the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Protocol

from gradlint.running import server as _server
from gradlint.running._collect import Contradiction
from gradlint.running._process import Worker
from gradlint.running._task import Enough, Task
from gradlint.running.events import Forgery
from gradlint.running.interruption import interruptible
from gradlint.running.news import Running

#: Seconds by which waiting may overshoot; a longer overshoot means that this process was suspended
#: (heuristic: with four times as many busy processes as cores it is tenths of a second).
STOPPED_S = 2.0


#: Times that a task may be in flight while the server ends. The second time it runs alone, so that
#: it is known what ended the server.
MOST_LOST = 2


class More(Protocol):
    """Tasks that come while others run."""

    open: bool

    def fileno(self) -> int:
        """What to wait on for them."""

    def take(self) -> list[Task]:
        """Those that have come; where none will, ``open`` is false from then on."""


def schedule(
    tasks: Iterable[Task],
    jobs: int,
    on_tick: Callable[[Sequence[Running]], None] | None = None,
    more: More | None = None,
) -> None:
    """Run ``tasks``, at most ``jobs`` workers at a time, until all are done.

    Where the server ends, it takes all workers with it. Their tasks are started anew, one at a
    time; one that is in flight when the server ends again is told so by the ending of its worker.

    ``on_tick`` is called at least every other second, with what is running. With ``more`` the end
    comes when its end has come, whatever runs then.

    Raises:
        Enough: a task says that the run ends here; every worker was killed before.
        KeyboardInterrupt: after every worker was killed and every task has heard of it.
        ServerLost: no worker can be started.
    """
    waiting: deque[Task] = deque(tasks)
    suspects: deque[Task] = deque()
    lost: dict[Task, int] = {}
    active: dict[Worker, Task] = {}
    try:
        while waiting or suspects or active or more is not None:
            alone = bool(suspects) or any(task in lost for task in active.values())
            queue, most = (suspects, 1) if alone else (waiting, max(1, jobs))
            _begin(queue, active, most)
            if not active and more is None:
                continue
            stopped = _wait(active, more)
            if more is not None and not _came(more, waiting):
                return
            if on_tick is not None:
                on_tick([task.running(worker.phase) for worker, task in active.items()])
            for worker, task in list(active.items()):
                _look_after(worker, task, stopped=stopped)
                ending = worker.ending
                if ending is None:
                    continue
                del active[worker]
                if ending.lost and ending.killed is None:
                    lost[task] = lost.get(task, 0) + 1
                    if lost[task] < MOST_LOST:
                        task.restart()
                        suspects.append(task)
                        continue
                waiting.extendleft(reversed(task.ended(ending)))
    finally:
        for worker, task in active.items():
            _abandon(worker, task)


def _begin(queue: deque[Task], active: dict[Worker, Task], most: int) -> None:
    """Start a worker for tasks of the ``queue``, as long as there are fewer than ``most``."""
    while queue and len(active) < most:
        task = queue.popleft()
        if task.wanted:
            active[Worker(task.job(), task.timeout)] = task


def _look_after(worker: Worker, task: Task, *, stopped: bool) -> None:
    """Take its news; end it if it is overdue, or if nobody waits for it any more."""
    # News first: the parent may have been asleep (Ctrl-Z), the worker was not.
    _deliver(worker, task)
    if stopped:
        worker.grant()
    if not task.wanted:
        worker.kill("interrupt")
    _end_in_time(worker, task)


def _wait(active: dict[Worker, Task], more: More | None = None) -> bool:
    """Wait for news. Returns whether the wait overshot by far: this process and its workers were
    stopped, or the machine was asleep."""
    now = time.monotonic()
    ends = [min(worker.deadline, task.until) for worker, task in active.items()]
    soonest = min(ends, default=float("inf"))
    objects = [thing for worker in active for thing in worker.waitables()]
    if more is not None:
        objects.append(more)
    patience = min(max(0.0, soonest - now) + 0.001, _server.LOOK_SECONDS)
    with interruptible():
        wait(objects, patience)
    _server.look()
    return time.monotonic() - now - patience > STOPPED_S


def _came(more: More, waiting: deque[Task]) -> bool:
    """Add what has come to what waits. Returns whether more may come."""
    waiting.extend(more.take())
    return more.open


def _end_in_time(worker: Worker, task: Task) -> None:
    """End a worker that has taken too long for its phase, or whose task has."""
    why = "timeout" if worker.overdue() else "limit" if time.monotonic() > task.until else ""
    if why and worker.ending is None:
        worker.kill(why)
        _deliver(worker, task)


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
    with suppress(Enough):  # the run ends already
        task.ended(worker.ending)
