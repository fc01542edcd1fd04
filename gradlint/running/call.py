"""One piece of work in one worker: for what needs torch or the user's code but is not a check."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradlint.base.errors import GradlintError, TargetError
from gradlint.model.events import Event
from gradlint.model.op import OpRef
from gradlint.model.report import Finding
from gradlint.model.settings import Settings
from gradlint.native.progress import pass_on
from gradlint.running import _memory
from gradlint.running import findings as _findings
from gradlint.running import server as _server
from gradlint.running._collect import Contradiction
from gradlint.running._process import Ending
from gradlint.running._schedule import schedule
from gradlint.running._task import Task, usage_error
from gradlint.running.events import (
    Account,
    Building,
    Done,
    Hello,
    Internal,
    LastWord,
    Loaded,
    NoInputs,
    OpRaised,
    Pid,
    Refs,
    Result,
    Swept,
    Unavailable,
    Unloadable,
    Usage,
)
from gradlint.running.findings import Scene, final_finding
from gradlint.running.job import (
    AuditWork,
    BenchWork,
    BuildWork,
    CallWork,
    DevicesWork,
    ExpandWork,
    Job,
    LearnWork,
    ReproduceWork,
    StarterWork,
    SweepWork,
    Work,
)
from gradlint.running.news import Running
from gradlint.targets.resolve import EVERY, resolve

R = TypeVar("R")

#: What the result of each kind of work is.
_RESULTS: dict[type[Work[Any]], type] = {
    AuditWork: dict,
    BenchWork: dict,
    BuildWork: str,
    CallWork: object,
    DevicesWork: dict,
    LearnWork: dict,
    ReproduceWork: dict,
    StarterWork: str,
}


class WorkerFailed(GradlintError):
    """The worker ended before it had a result.

    Args:
        finding: what it died of, as ``check`` would report it; None if gradlint itself failed.
        internal: the traceback of gradlint's own failure, or "".
    """

    def __init__(self, finding: Finding | None, internal: str = "", what: str = "") -> None:
        self.finding = finding
        self.internal = internal
        if finding is not None:
            place = str(finding.location) if finding.location is not None else ""
            super().__init__(f"{finding.code} {finding.message}", place=place, hint=finding.help)
            self.exit_code = 1
        else:
            super().__init__(what or "internal error of gradlint")
            self.exit_code = 3


class CallTask:
    """Runs one job and keeps its result."""

    wanted = True

    def __init__(self, job: Job, ref: OpRef, settings: Settings, timeout: float) -> None:
        self.timeout = timeout
        self.until = float("inf")
        self._job = job
        self._ref = ref
        self._settings = settings
        self.restart()

    def restart(self) -> None:
        """Without a result yet."""
        self.result: Any = None
        self.usage: GradlintError | None = None
        self.finding: Finding | None = None
        self.internal: Account | None = None
        self._last: LastWord | None = None
        self._answered = False
        self._ended = False
        self._started = time.monotonic()

    def job(self) -> Job:
        """The one job."""
        return self._job

    def event(self, event: Event) -> None:
        """Keep what matters for the result."""
        if isinstance(event, (Internal, OpRaised)):
            self.internal = event.account
            return
        if isinstance(event, LastWord):
            self._last = event
            return
        self._require(not self._ended, "something after the end of the job")
        match event:
            case Hello() | Pid() | Loaded():
                pass
            case Building(progress):
                pass_on(progress)
            case Done():
                self._require(self._answered, "the end of the job, before a result")
                self._ended = True
            case _:
                self._require(not self._answered, "a second result")
                self._answered = True
                self._answer(event)

    def running(self, phase: str) -> Running:
        """What it was asked for."""
        return Running(self._ref.target, phase, "", time.monotonic() - self._started)

    def ended(self, ending: Ending) -> list[Task]:
        """Say what it died of, if it did."""
        done = ending.finished and not ending.lost
        if ending.killed != "interrupt" and (self._last or not (done or self.internal)):
            scene = Scene(self._ref, self._settings, ending.phase, None, ending.stack, ending.tail)
            self.finding = final_finding(scene, self._last, ending)
            self.result = None
        return []

    def outcome(self) -> Any:
        """The result, or the error that stands in its place."""
        if self.usage is not None:
            raise self.usage
        if self.internal is not None:
            what = f"internal error of gradlint: {self.internal.line}"
            raise WorkerFailed(None, self.internal.traceback, what)
        if self.finding is not None:
            raise WorkerFailed(self.finding)
        return self.result

    # -- inner workings -------------------------------------------------------------------------

    def _answer(self, event: Event) -> None:
        work = self._job.work
        match event:
            case Refs(refs) if isinstance(work, ExpandWork):
                self.result = refs
            case Swept(targets) if isinstance(work, SweepWork):
                self.result = targets
            case Result(value) if isinstance(value, _RESULTS.get(type(work), ())):
                self.result = value
            case Unavailable(reason):
                self.usage = GradlintError(reason)
            case Usage():
                self.usage = usage_error(event)
            case Unloadable():
                self.finding = _findings.unloadable(self._ref, self._settings, event)
            case NoInputs():
                self.finding = _findings.no_inputs(self._ref, self._settings, event)
            case _:
                self._require(False, f"a {type(event).__name__}, which this job does not send")

    def _require(self, true: bool, what: str) -> None:
        if not true:
            raise Contradiction(f"gradlint received {what}")


def call_in_worker(work: Work[R], *, timeout: float | None = None) -> R:
    """What comes of ``work`` in a fresh worker.

    Args:
        timeout: seconds; None for as long as it takes.

    Raises:
        GradlintError: what the work raised of this kind.
        WorkerFailed: the worker died, hung or failed.
    """
    name = type(work).__name__
    ref = OpRef(name, "module", name)
    settings = Settings(timeout=timeout or Settings.timeout)
    result: R = _run(CallTask(Job(work), ref, settings, timeout or float("inf")))
    return result


def call_on_target(
    work: SweepWork | StarterWork | AuditWork | ExpandWork | ReproduceWork,
) -> Any:
    """What comes of ``work`` in a fresh worker, with the limits of its settings; findings about how
    the worker ends are about its operator.

    Raises:
        GradlintError: the target, its inputs or its specification can't be used.
        WorkerFailed: the op can't be loaded, crashed or hung; ``finding`` says how.
    """
    settings = work.settings
    memory = _memory.allowance(settings.memory_mb, 1, settings.devices)
    return _run(CallTask(Job(work, memory), work.ref, settings, settings.timeout))


def learned(
    works: Sequence[LearnWork],
    jobs: int,
    on_tick: Callable[[Sequence[Running]], None] | None = None,
) -> list[dict[str, Any] | GradlintError]:
    """What comes of each of ``works``, or the error that stands in its place.

    A worker that crashes or hangs while sizes are shrunk is followed by one that leaves them as
    they are.
    """
    _server.start()
    found: dict[int, dict[str, Any] | GradlintError] = {}
    left = dict(enumerate(works))
    for shrink in (True, False):
        tasks = {}
        for number, work in left.items():
            work = dataclasses.replace(work, shrink=shrink)
            memory = _memory.allowance(work.settings.memory_mb, jobs, work.settings.devices)
            job = Job(work, memory)
            tasks[number] = CallTask(job, work.ref, work.settings, work.settings.timeout)
        schedule(tasks.values(), jobs, on_tick)
        for number, task in tasks.items():
            try:
                found[number] = task.outcome()
                del left[number]
            except WorkerFailed as error:
                found[number] = error
            except GradlintError as error:
                found[number] = error
                del left[number]
    return [found[number] for number in range(len(works))]


def starter(target: str, settings: Settings, folder: str = ".") -> str:
    """The YAML text of a specification of ``target`` with the inputs that were found for it.

    Args:
        target: what to describe.
        settings: how to find its inputs.
        folder: where the text will be kept; the operator's file is named as seen from there.

    Raises:
        GradlintError: the target can't be used, or names more than one operator.
    """
    _server.start()
    refs = resolve(target, settings)
    if len(refs) != 1 or refs[0].attribute == EVERY:
        names = ", ".join(ref.target for ref in refs[:5])
        raise TargetError(
            f"{target} names {len(refs)} operators; a specification describes one",
            hint=f"name one of them: {names}",
        )
    text: str = call_on_target(StarterWork(refs[0], settings, folder))
    return text


def audited(target: str, settings: Settings) -> dict[str, Any]:
    """What ``gradlint.overrides.audit.audit`` returns for the class ``target``.

    Raises:
        GradlintError: the target can't be used, or is not a class that overrides torch's functions.
        WorkerFailed: the module can't be loaded, crashed or hung.
    """
    _server.start()
    refs = resolve(target, settings)
    if len(refs) != 1 or refs[0].attribute in ("", EVERY) or refs[0].source == "library":
        raise TargetError(
            f"`{target}` does not name a single class",
            hint="Write pkg.mod:Class or path/file.py:Class.",
        )
    found: dict[str, Any] = call_on_target(AuditWork(refs[0], settings))
    return found


def _run(task: CallTask) -> Any:
    schedule([task], 1)
    return task.outcome()
