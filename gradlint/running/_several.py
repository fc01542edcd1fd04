"""Several operators on their way through one worker: they take turns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from gradlint.model.events import Event
from gradlint.model.settings import Settings
from gradlint.running._collect import Contradiction
from gradlint.running._process import Ending
from gradlint.running._stack import Stack
from gradlint.running._task import ConfirmTask, TargetTask, Task
from gradlint.running.events import Done, Hello, LastWord, Turn, TurnOver
from gradlint.running.job import Job, SeveralWork
from gradlint.running.news import Running
from gradlint.targets.plain_files import is_plain
from gradlint.targets.source_file import read_source

#: Operators of one worker, at most (heuristic: 20 instead of 5 took 7 % less; results, which wait
#: for what confirms them, come every few seconds).
MOST = 16

#: Shares of a run for each worker, so that none has much left to do when all others are done.
_SHARES = 4

#: How the turn of an operator ended that ended as it should.
_AS_IT_SHOULD = Ending(
    exit_code=0, killed=None, phase="done", user_phase="", stack=Stack(), tail="", finished=True
)


class SeveralTask:
    """Checks operators of plain files in one worker, or confirms several, as long as each of them
    ends as it should.

    One that does not is done once more, by itself, unless the worker was still fresh: nothing is
    said against it for what another one did. Those that come after it are given another worker.

    Args:
        tasks: what checks each of them, or what confirms each.
        settings: of the run; memory_mb: as of ``Job``.
    """

    until = float("inf")
    wanted = True

    def __init__(
        self,
        tasks: Sequence[TargetTask] | Sequence[ConfirmTask],
        settings: Settings,
        memory_mb: int | None,
    ) -> None:
        self.timeout = settings.timeout
        self._settings = settings
        self._memory_mb = memory_mb
        self._rest: list[TargetTask | ConfirmTask] = list(tasks)
        self._shown = self._rest[0]
        self._next: list[Task] = []  # what follows from those that are done
        self.restart()

    def restart(self) -> None:
        """Begin with the first one that is not done."""
        self._number = -1
        self._current: TargetTask | ConfirmTask | None = None
        for task in self._rest:
            task.restart()

    def job(self) -> Job:
        """Check them all, or confirm them all."""
        works: Any = tuple(task.job().work for task in self._rest)
        return Job(SeveralWork(works), self._memory_mb)

    def event(self, event: Event) -> None:
        """Pass it to the task whose turn it is."""
        current = self._current
        match event:
            case Turn(number):
                if current is not None or number != self._number + 1 or not self._rest:
                    raise Contradiction("an operator is begun whose turn it is not")
                self._number, self._current = number, self._rest[0]
                self._shown = self._current
                self._current.job()  # it begins
            case TurnOver() if current is not None:
                current.event(Done())
                self._current = None
                self._rest.remove(current)
                self._next += current.ended(_AS_IT_SHOULD)
            case _ if current is not None:
                current.event(event)
            case _ if not isinstance(event, Hello | Done | LastWord):
                raise Contradiction("something is said of an operator before its turn")

    def ended(self, ending: Ending) -> list[Task]:
        """Say what is to run next: what follows from those that are done, the one that was begun,
        and the rest."""
        found, begun = self._next, self._current
        self._next, self._current = [], None
        if begun is not None:
            self._rest.remove(begun)
            if self._number == 0 or ending.killed == "interrupt":
                found = [*found, *begun.ended(ending)]
            else:
                begun.restart()
                found = [*found, begun]
        if self._rest and ending.killed != "interrupt":
            found = [*found, self._several(self._rest)]
        confirming = [task for task in found if isinstance(task, ConfirmTask)]
        if len(confirming) > 1:
            others = [task for task in found if task not in confirming]
            found = [self._several(confirming), *others]
        return found

    def running(self, phase: str) -> Running:
        """What is done for the one whose turn it is, or was last."""
        return self._shown.running(phase)

    def _several(self, tasks: Sequence[Any]) -> SeveralTask:
        return SeveralTask(tasks, self._settings, self._memory_mb)


def in_turns(tasks: Sequence[Task], settings: Settings, memory_mb: int | None) -> Iterator[Task]:
    """``tasks``, where those that may take turns are put together, in their order."""
    most = min(MOST, -(-len(tasks) // (_SHARES * settings.jobs)))
    plain = cache(_is_plain_file)
    together: list[TargetTask] = []
    for task in tasks:
        if (
            most > 1
            and isinstance(task, TargetTask)
            and task.may_take_turns
            and plain(os.path.abspath(task.ref.path))
        ):
            together.append(task)
            if len(together) == most:
                yield SeveralTask(together, settings, memory_mb)
                together = []
        else:
            yield task
    if len(together) > 1:
        yield SeveralTask(together, settings, memory_mb)
    else:
        yield from together


def _is_plain_file(path: str) -> bool:
    """Whether the file at ``path`` leaves nothing behind where it runs."""
    source = read_source(path)
    return source is not None and is_plain(source)
