"""Keeps a number of workers busy with tasks, and makes sure that none outlives the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait

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


def schedule(
    tasks: Iterable[Task], jobs: int, on_tick: Callable[[Sequence[Running]], None] | None = None
) -> None:
    """Run ``tasks``, at most ``jobs`` workers at a time, until all are done.

    Where the server ends, it takes all workers with it. Their tasks are started anew, one at a
    time; one that is in flight when the server ends again is told so by the ending of its worker.

    ``on_tick`` is called at least every other second, with what is running.

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
        while waiting or suspects or active:
            alone = bool(suspects) or any(task in lost for task in active.values())
            queue, most = (suspects, 1) if alone else (waiting, max(1, jobs))
            _begin(queue, active, most)
            if not active:
                continue
            stopped = _wait(active)
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
    if worker.overdue():
        worker.kill("timeout")
        _deliver(worker, task)


def _wait(active: dict[Worker, Task]) -> bool:
    """Wait for news. Returns whether the wait overshot by far: this process and its workers were
    stopped, or the machine was asleep."""
    now = time.monotonic()
    soonest = min(worker.deadline for worker in active)
    objects = [thing for worker in active for thing in worker.waitables()]
    patience = min(max(0.0, soonest - now) + 0.001, _server.LOOK_SECONDS)
    with interruptible():
        wait(objects, patience)
    _server.look()
    return time.monotonic() - now - patience > STOPPED_S


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
