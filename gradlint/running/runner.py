"""A process that does items for another one: ``python -m gradlint.running.runner JOBS``.

It reads requests from its standard input and writes answers to its standard output, each with its
length in front. The operators run in its workers, as in any run of gradlint; neither this process
nor the one that asks imports them or torch. It ends, and its workers with it, when its input does.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from gradlint.base.errors import GradlintError
from gradlint.base.files import write_whole
from gradlint.base.scratch import scratch_folder
from gradlint.model.events import Event
from gradlint.model.report import TargetReport
from gradlint.running import _memory, _pieces
from gradlint.running import server as _server
from gradlint.running._process import Ending
from gradlint.running._schedule import schedule
from gradlint.running._task import TargetTask, Task, Trouble
from gradlint.running.call import CallTask, call_in_worker
from gradlint.running.confinement import confined
from gradlint.running.items import Item, Mistake, Result, decoded, encoded, mistake_of
from gradlint.running.job import DevicesWork, ExpandWork, Job
from gradlint.running.news import Running

#: Seconds in which a worker must have said what devices there are.
_DEVICES_TIMEOUT = 120.0


class _Listing:
    """Lists the operators of a module that must be imported for it."""

    wanted = True

    def __init__(self, item: Item, memory_mb: int | None, done: Callable[[Result], None]) -> None:
        self.timeout = item.settings.timeout
        self.until = _until(item)
        self._item = item
        self._done = done
        self._begun = False
        job = Job(ExpandWork(item.ref, item.settings), memory_mb)
        self._call = CallTask(job, item.ref, item.settings, self.timeout)

    @property
    def begun(self) -> bool:
        return self._begun

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.wanted = False

    def job(self) -> Job:
        self._begun = True
        return self._call.job()

    def event(self, event: Event) -> None:
        self._call.event(event)

    def restart(self) -> None:
        self._call.restart()

    def running(self, phase: str) -> Running:
        return self._call.running(phase)

    def ended(self, ending: Ending) -> list[Task]:
        """Answer with the operators, or with why there are none."""
        call = self._call
        call.ended(ending)
        result = Result(socket.gethostname())
        if call.result is not None:
            result.refs = call.result
        else:
            result.report = report = TargetReport(self._item.ref.target, verdict="error")
            if call.usage is not None:
                result.usage.append(mistake_of(call.usage))
                report.notes.append(str(call.usage))
            elif call.internal is not None:
                result.internal.append(f"{self._item.ref.target}: {call.internal.line}\n")
                report.notes.append("internal error of gradlint")
            elif call.finding is not None:
                report.findings.append(call.finding)
            else:
                report.notes.append("interrupted")
        self._done(result)
        return []


class Requests:
    """What comes in, as tasks for the scheduler, and the answers to it."""

    def __init__(self, source: int, sink: int, jobs: int) -> None:
        self.open = True
        self._source = source
        self._sink = sink
        self._jobs = jobs
        self._pieces = _pieces.Pieces()
        self._under_way: dict[int, TargetTask | _Listing] = {}
        self._devices: dict[str, bool] = {}
        os.set_blocking(source, False)

    def fileno(self) -> int:
        """What to wait on for more."""
        return self._source

    def take(self) -> list[Task]:
        """Tasks for what has come since."""
        tasks = []
        try:
            while True:
                data = os.read(self._source, _pieces.CHUNK)
                if not data:
                    self.open = False
                    break
                for number, body in self._pieces.feed(data):
                    tasks += self._tasks(number, body)
        except BlockingIOError:
            pass
        return tasks

    def _tasks(self, number: int, body: bytes) -> list[Task]:
        def answer(result: Result) -> None:
            self._under_way.pop(number, None)
            _pieces.write(self._sink, number, encoded(result))

        if not body:  # nobody waits for it any more
            self._cancel(number, answer)
            return []
        try:
            item = decoded(body, Item)
            item = self._prepared(item)
            memory = _memory.allowance(item.settings.memory_mb, self._jobs, item.settings.devices)
            task = (_Listing if item.lists else _task)(item, memory, answer)
            self._under_way[number] = task
            return [task]
        except GradlintError as error:
            answer(_refused(mistake_of(error)))
        except Exception as error:  # whoever asks must not wait for ever
            answer(Result(socket.gethostname(), internal=[f"{type(error).__name__}: {error}\n"]))
        return []

    def _cancel(self, number: int, answer: Callable[[Result], None]) -> None:
        """End what was asked for under ``number``."""
        task = self._under_way.get(number)
        if task is None:
            return
        task.cancel()
        if not task.begun:  # it has no worker that could end
            answer(Result(socket.gethostname()))

    def _prepared(self, item: Item) -> Item:
        """``item`` with its files written, its devices looked for, its confinement tried."""
        settings = item.settings
        if settings.untrusted:
            confined(settings)
        for device in settings.devices:
            if device != "cpu" and not self._present(device):
                raise GradlintError(
                    f"{device} is not available on {socket.gethostname()}",
                    place="--cluster",
                    hint="give the resource GPU to workers that have one, and to no others",
                )
        if not item.files:
            return item
        text = "\0".join(f"{name}\0{content}" for name, content in sorted(item.files.items()))
        folder = os.path.join(scratch_folder(), hashlib.sha256(text.encode()).hexdigest()[:16])
        os.makedirs(folder, exist_ok=True)
        for name, content in item.files.items():
            if os.path.basename(name) != name:
                raise GradlintError(f"{name!r} is not the name of a file")
            write_whole(os.path.join(folder, name), [content])
        ref = item.ref
        if os.path.basename(ref.path) in item.files:
            ref = replace(ref, path=os.path.join(folder, os.path.basename(ref.path)))
        return replace(item, ref=ref)

    def _present(self, device: str) -> bool:
        if not self._devices:
            self._devices = call_in_worker(DevicesWork(), timeout=_DEVICES_TIMEOUT)
        return self._devices.get(device, False)


def _refused(mistake: Mistake) -> Result:
    return Result(socket.gethostname(), usage=[mistake])


def _until(item: Item) -> float:
    """When its time is over, on the monotonic clock."""
    limit = item.time_limit
    return float("inf") if limit is None else time.monotonic() + limit


def _task(item: Item, memory_mb: int | None, answer: Callable[[Result], None]) -> TargetTask:
    trouble = Trouble()

    def finished(task: TargetTask) -> None:
        files, why = task.seen()
        report = task.report
        if item.files:
            report = _without_folder(report, os.path.dirname(item.ref.path))
        usage = [mistake_of(error) for error in trouble.usage]
        answer(
            Result(
                socket.gethostname(),
                report,
                usage=usage,
                internal=trouble.internal,
                files=list(files),
                why=why,
            )
        )

    task = TargetTask(item.ref, item.settings, trouble, memory_mb=memory_mb, finished=finished)
    task.until = _until(item)
    return task


def _without_folder(report: TargetReport, folder: str) -> TargetReport:
    """``report`` with the files that came with an item named as they came."""
    prefixes = [os.path.join(folder, ""), os.path.join(os.path.relpath(folder), "")]

    def named(value: Any) -> Any:
        if isinstance(value, str):
            for prefix in prefixes:
                value = value.replace(prefix, "")
            return value
        if isinstance(value, dict):
            return {key: named(item) for key, item in value.items()}
        return [named(item) for item in value] if isinstance(value, list) else value

    return msgspec.convert(named(msgspec.to_builtins(report)), TargetReport)


def _ignored(_: Sequence[Running]) -> None:
    """Nobody watches."""


def main(words: Sequence[str]) -> int:
    """Do items until there are none to come."""
    jobs = int(words[0])
    source, sink = os.dup(0), os.dup(1)
    # Nothing else may be read there, or written.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    requests = Requests(source, sink, jobs)
    _server.start("tracing", private="--untrusted" in words)
    try:
        with suppress(BrokenPipeError):
            schedule([], jobs, _ignored, more=requests)
    finally:
        _server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
