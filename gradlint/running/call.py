"""One function in one worker, for what needs torch or the user's code but is no check."""

from __future__ import annotations

from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.model.op import OpRef
from gradlint.model.report import Finding
from gradlint.model.settings import Settings
from gradlint.native.progress import pass_on
from gradlint.running import _memory
from gradlint.running import findings as _findings
from gradlint.running._job import Job
from gradlint.running._process import Ending
from gradlint.running._schedule import schedule
from gradlint.running._task import LAST_WORDS, Task, error_line, usage_error
from gradlint.running.findings import Scene, final_finding


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

    def __init__(self, job: Job, ref: OpRef, settings: Settings, timeout: float) -> None:
        self.timeout = timeout
        self.result: Any = None
        self.usage: GradlintError | None = None
        self.finding: Finding | None = None
        self.internal: dict[str, Any] | None = None
        self._job = job
        self._ref = ref
        self._settings = settings
        self._last: tuple[str, Any] | None = None

    def job(self) -> Job:
        """The one job."""
        return self._job

    def event(self, kind: str, payload: Any) -> None:
        """Keep what matters for the result."""
        if kind in ("result", "refs"):
            self.result = payload
        elif kind == "building":
            pass_on(payload)
        elif kind == "not_here":
            self.usage = GradlintError(payload)
        elif kind == "usage":
            self.usage = usage_error(payload)
        elif kind == "unloadable":
            self.finding = _findings.unloadable(self._ref, self._settings, payload)
        elif kind == "no_inputs":
            self.finding = _findings.no_inputs(self._ref, self._settings, payload)
        elif kind in ("internal", "op_raised"):
            self.internal = payload
        elif kind in LAST_WORDS:
            self._last = (kind, payload)

    def ended(self, ending: Ending) -> list[Task]:
        """Say what it died of, if it did."""
        if ending.killed != "interrupt" and (self._last or not (ending.finished or self.internal)):
            scene = Scene(self._ref, self._settings, ending.phase, None, ending.stack, ending.tail)
            self.finding = final_finding(scene, self._last, ending)
        return []

    def outcome(self) -> Any:
        """The result, or the error that stands in its place."""
        if self.usage is not None:
            raise self.usage
        if self.internal is not None:
            what = f"internal error of gradlint: {error_line(self.internal)}"
            raise WorkerFailed(None, self.internal["traceback"], what)
        if self.finding is not None:
            raise WorkerFailed(self.finding)
        return self.result


def call_in_worker(function: str, *arguments: Any, timeout: float | None = None) -> Any:
    """What ``function`` returns when it is called with ``arguments`` in a fresh worker.

    Args:
        function: dotted path ``package.module:name``.
        arguments: picklable values.
        timeout: seconds; None for as long as it takes.

    Returns:
        The result as builtin values and gradlint's dataclasses; other objects come as text.

    Raises:
        GradlintError: what the function raised of this kind.
        WorkerFailed: the worker died, hung or failed.
    """
    ref = OpRef(function, "module", function.partition(":")[0])
    settings = Settings(timeout=timeout or Settings.timeout)
    job = Job("gradlint.running.jobs:call", (function, arguments))
    return _run(CallTask(job, ref, settings, timeout or float("inf")))


def call_on_target(function: str, ref: OpRef, settings: Settings, *arguments: Any) -> Any:
    """What ``function(op, samples, settings, *arguments)`` returns in a worker.

    Raises:
        GradlintError: the target, its inputs or its specification can't be used.
        WorkerFailed: the op can't be loaded, crashed or hung; ``finding`` says how.
    """
    memory = _memory.allowance(settings.memory_mb, 1, settings.devices)
    job = Job("gradlint.running.jobs:on_target", (function, ref, settings, arguments), memory)
    return _run(CallTask(job, ref, settings, settings.timeout))


def run_task(job: Job, ref: OpRef, settings: Settings) -> Any:
    """The result of ``job``; findings about its end are about ``ref``.

    Raises:
        GradlintError: what the job raised of this kind.
        WorkerFailed: the worker died, hung or failed.
    """
    return _run(CallTask(job, ref, settings, settings.timeout))


def _run(task: CallTask) -> Any:
    schedule([task], 1)
    return task.outcome()
