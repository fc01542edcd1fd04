"""A whole run: from the targets a user typed to a report."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import gradlint
from gradlint.base.errors import GradlintError
from gradlint.base.text import first_line, without_password
from gradlint.model.events import Event
from gradlint.model.op import OpRef
from gradlint.model.report import Report, RunError, TargetReport, jsonable
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import select_rules
from gradlint.running import _memory
from gradlint.running import server as _server
from gradlint.running._compiling import divisible
from gradlint.running._process import Ending
from gradlint.running._sanitizer import SanitizedTask, Sanitizer, sanitizer
from gradlint.running._schedule import schedule
from gradlint.running._several import in_turns
from gradlint.running._task import Enough, TargetTask, Task, Trouble
from gradlint.running.call import CallTask, call_in_worker
from gradlint.running.confinement import confined
from gradlint.running.dispatch import on_cluster
from gradlint.running.interruption import interruptible
from gradlint.running.job import DevicesWork, Examine, ExpandWork, Job
from gradlint.running.news import Progress, Running, Tick
from gradlint.running.spool import Place, Spool, SpooledReports
from gradlint.running.suppressions import add_suppression_findings
from gradlint.targets.resolve import EVERY, left_out, resolve

#: Whether a target is left out of the run: why, in words that complete "not checked: …", or "".
#: Asked of every operator, and of modules that must be imported to list theirs.
LeaveOut = Callable[[OpRef], str]


@dataclass(frozen=True)
class Seen:
    """What the worker of one operator read.

    Args:
        files: their paths, but for what is installed.
        why: why its verdict may depend on more, or on the moment; in words that complete "it …".
    """

    files: tuple[str, ...] = ()
    why: str = ""


class Recall(Protocol):
    """Verdicts of earlier runs, as ``gradlint.cache`` keeps them."""

    def expect(self, refs: Sequence[OpRef], settings: Settings) -> None:
        """These operators are going to be asked for, in this order, with settings that name no
        device that is absent."""

    def find(self, ref: OpRef) -> TargetReport | None:
        """What is known of ``ref``, if it still holds."""

    def keep(self, ref: OpRef, report: TargetReport, seen: Seen) -> None:
        """``report`` was made; nothing has changed it since."""


#: Looks at every target that is done; True ends the run. May change the report.
Judge = Callable[[TargetReport], bool]

#: Said of a file, module or folder in which there was nothing to check.
NO_OPERATOR = (
    "holds no operator (a torch.autograd.Function, a custom op, a spec, or anything with "
    "sample_inputs); name a plain callable or module itself: path/file.py:Name"
)

#: Said of a target that was not done when the run ended early.
NOT_REACHED = "not done: the run ended after as many failures as were asked for (--max-failures)"

#: Bytes of source, over all workers, from which on the server reads it instead. Heuristic: parsing
#: a megabyte takes about as long as starting a server.
_WORTH_BYTES = 5_000_000

#: Seconds in which a worker must have said what devices there are.
_DEVICES_TIMEOUT = 120.0


@dataclass
class Run:
    """The outcome of a run.

    Args:
        report: what is known of every target, also after an interruption.
        usage: the user's mistakes (exit code 2).
        internal: gradlint's own failures (exit code 3): a line that says what, then the traceback.
        left_out: what was asked to be left out: why, and which operators.
    """

    report: Report
    usage: list[GradlintError] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    left_out: dict[str, list[OpRef]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """130 interrupted, 3 internal error, 2 usage error, else the report's own."""
        if self.report.interrupted:
            return 130
        if self.internal:
            return 3
        if self.usage:
            return 2
        return self.report.exit_code

    @property
    def empty(self) -> bool:
        """Whether there is nothing to report apart from the user's mistakes."""
        return bool(self.usage) and not any(
            target.findings or target.checks or target.samples for target in self.report.targets
        )


class KnownTarget:
    """A target of which all is known from an earlier run."""

    def __init__(self, report: TargetReport) -> None:
        self._report: TargetReport | None = report

    @property
    def report(self) -> TargetReport:
        """What is known, until it is released."""
        assert self._report is not None
        return self._report

    def release(self) -> None:
        """Hold nothing more of the report: it is kept elsewhere."""
        self._report = None


class ExpandTask:
    """Lists the operators of a module that must be imported for it; then they are checked."""

    wanted = True

    def __init__(self, ref: OpRef, settings: Settings, plan: _Plan) -> None:
        self.timeout = settings.timeout
        self.until = float("inf")
        self.tasks: list[TargetTask | KnownTarget] = []
        self.report: TargetReport | None = None
        self._ref = ref
        self._plan = plan
        job = Job(ExpandWork(ref, settings), plan.memory_mb)
        self._call = CallTask(job, ref, settings, settings.timeout)

    def job(self) -> Job:
        """Import the module."""
        return self._call.job()

    def event(self, event: Event) -> None:
        """Keep the list."""
        self._call.event(event)

    def restart(self) -> None:
        """List them anew."""
        self._call.restart()

    def running(self, phase: str) -> Running:
        """The module is being imported."""
        return self._call.running(phase)

    def ended(self, ending: Ending) -> list[Task]:
        """Check every operator found; or say why the module has none."""
        self._call.ended(ending)
        call = self._call
        if call.result is not None:
            within = self._plan.position(self._ref)
            self.tasks = self._plan.tasks_for(self._plan.chosen(call.result, within))
            if not call.result:
                why = [NO_OPERATOR, *filter(None, [self._plan.empty.get(self._ref.target)])]
                self._plan.empty[self._ref.target] = "; ".join(why)
            self._plan.tell_known(self.tasks)
            if self._plan.settings.cluster is not None:
                return []  # done there, with all others
            tasks = [task for task in self.tasks if isinstance(task, TargetTask)]
            return [*in_turns(tasks, self._plan.settings, self._plan.memory_mb)]
        self.report = report = TargetReport(self._ref.target, verdict="error")
        report.position = self._plan.position(self._ref)
        if call.usage is not None:
            self._plan.trouble.usage.append(call.usage)
            report.notes.append(str(call.usage))
        elif call.internal is not None:
            self._plan.trouble.add_internal(self._ref.target, call.internal)
            report.notes.append("internal error of gradlint")
        elif call.finding is not None:
            report.findings.append(call.finding)
        else:
            report.verdict = "skipped"
            report.notes.append("interrupted")
        self._plan.advance(report)
        return []


class _Plan:
    """The tasks of a run in the order of the report."""

    def __init__(
        self,
        settings: Settings,
        trouble: Trouble,
        on_progress: Progress | None,
        leave_out: LeaveOut | None = None,
        judge: Judge | None = None,
        recall: Recall | None = None,
        spool: Spool | None = None,
    ) -> None:
        self.settings = settings
        self.recall = recall
        self._spool = spool
        self._places: dict[TargetTask | KnownTarget, Place] = {}
        self.trouble = trouble
        self.memory_mb: int | None = None
        self.sanitizer: Sanitizer | None = None
        self.empty: dict[str, str] = {}
        self.examine: Examine | None = None
        self.listing = False
        self.divided = False
        self._run = secrets.token_hex(8)
        self.on_tick: Tick | None = None
        self._on_progress = on_progress
        self._leave_out = leave_out
        self._judge = judge
        self._positions: dict[tuple[str, str, str], list[int]] = {}
        self.left_out: dict[str, list[OpRef]] = {}
        self.tasks: list[TargetTask | ExpandTask | KnownTarget] = []
        self._expanding: list[ExpandTask] = []  # those of the tasks
        self._done = 0

    @property
    def total(self) -> int:
        """How many targets are known so far. It is asked for at every event of every worker."""
        more = sum(len(task.tasks) or 1 for task in self._expanding)
        return len(self.tasks) - len(self._expanding) + more

    @property
    def remembers(self) -> bool:
        """Whether no worker may be needed here."""
        return self.recall is not None or self.settings.cluster is not None

    def position(self, ref: OpRef) -> list[int]:
        """The place of ``ref`` among all operators, those that are left out counted."""
        return self._positions[ref.source, ref.path, ref.attribute]

    def chosen(self, refs: Sequence[OpRef], within: Sequence[int] = ()) -> list[OpRef]:
        """Those of ``refs`` that are not left out, each once.

        Args:
            refs: operators, in their order.
            within: the position of what they were found in.
        """
        kept = []
        for number, ref in enumerate(refs):
            key = (ref.source, ref.path, ref.attribute)
            if key in self._positions:
                continue
            self._positions[key] = [*within, number]
            reason = self._leave_out(ref) if self._leave_out is not None else ""
            if reason:
                self.left_out.setdefault(reason, []).append(ref)
            else:
                kept.append(ref)
        return kept

    def add(self, refs: Sequence[OpRef]) -> None:
        """Plan ``refs``, which :meth:`chosen` gave."""
        if self.recall is not None:
            known = [ref for ref in refs if ref.attribute != EVERY]
            self.recall.expect(known, self.settings)
        for ref in refs:
            if ref.attribute == EVERY:
                self._expanding.append(ExpandTask(ref, self.settings, self))
                self.tasks.append(self._expanding[-1])
            else:
                self.tasks += self.tasks_for([ref])

    def to_run(self) -> list[Task]:
        """What needs a worker, in the order in which it is to be started."""
        found: list[Task] = []
        for task in self.tasks:
            if isinstance(task, KnownTarget):
                continue
            found.append(task)
            if isinstance(task, TargetTask) and task.compiling is not None:
                found.insert(0, task.compiling)  # it takes longer
        return found

    def tell_known(self, tasks: Sequence[TargetTask | ExpandTask | KnownTarget]) -> None:
        """Those of ``tasks`` that are known already are done.

        Raises:
            Enough: nothing more is to be checked.
        """
        for task in tasks:
            if isinstance(task, KnownTarget):
                report = self._report_of(task)
                try:
                    self.advance(report)
                finally:
                    self._keep(task, report)

    def tasks_for(self, refs: Sequence[OpRef]) -> list[TargetTask | KnownTarget]:
        """A task for each of ``refs``."""
        tasks: list[TargetTask | KnownTarget] = []
        for ref in refs:
            known = self.recall.find(ref) if self.recall is not None else None
            if known is not None:
                known.position = self.position(ref)
                tasks.append(KnownTarget(known))
                self._keep(tasks[-1], known)
                continue
            task = self._task(
                ref,
                self.settings,
                self.trouble,
                memory_mb=self.memory_mb,
                examine=self.examine,
                listing=self.listing,
                finished=self._finished,
                divided=self.divided,
                position=self.position(ref),
                run=self._run,
            )
            tasks.append(task)
        return tasks

    def _task(self, *arguments: Any, **options: Any) -> TargetTask:
        if self.sanitizer is None:
            return TargetTask(*arguments, **options)
        return SanitizedTask(*arguments, sanitizer=self.sanitizer, **options)

    def _finished(self, task: TargetTask) -> None:
        if self.recall is not None:
            self.recall.keep(task.ref, task.report, Seen(*task.seen()))
        report = task.report
        try:
            self.advance(report)
        finally:
            self._keep(task, report)

    def _keep(self, task: TargetTask | KnownTarget, report: TargetReport) -> None:
        """Let the spool hold the report of ``task``, if there is one."""
        if self._spool is not None:
            self._places[task] = self._spool.keep(report)
            task.release()

    def _report_of(self, task: TargetTask | KnownTarget) -> TargetReport:
        place = self._places.get(task)
        if place is None or self._spool is None:
            return task.report
        return self._spool.read(place)

    def advance(self, report: TargetReport) -> None:
        """One target is done.

        Raises:
            Enough: nothing more is to be checked.
        """
        self._done += 1
        enough = self._judge is not None and self._judge(report)
        if self._on_progress is not None:
            self._on_progress(self._done, self.total, report)
        if enough:
            raise Enough

    def tick(self, running: Sequence[Running]) -> None:
        """Say how far the run is."""
        if self.on_tick is not None:
            self.on_tick(self._done, self.total, running)

    def skip_all(self, reason: str) -> None:
        """Run nothing, and say why."""
        for task in self.tasks:
            if isinstance(task, TargetTask):
                task.report.notes.append(reason)

    def reports(self) -> MutableSequence[TargetReport]:
        """Every target's report, in the order in which the user named them."""
        if self._spool is None:
            return [item if isinstance(item, TargetReport) else item.report for item in self._all()]
        places = []
        for item in self._all():
            place = None if isinstance(item, TargetReport) else self._places.get(item)
            if place is None:
                report = item if isinstance(item, TargetReport) else item.report
                place = self._spool.keep(report)
            if not isinstance(item, TargetReport):
                item.release()
            places.append(place)
        return SpooledReports(self._spool, places)

    def _all(self) -> Iterator[TargetTask | KnownTarget | TargetReport]:
        """What has a report, or is one, in the order of the reports."""
        for task in self.tasks:
            if not isinstance(task, ExpandTask):
                yield task
            else:
                yield from task.tasks
                if task.report is not None:
                    yield task.report


def execute(
    targets: Sequence[str],
    settings: Settings,
    *,
    on_progress: Progress | None = None,
    on_tick: Tick | None = None,
    examine: Examine | None = None,
    listing: bool = False,
    leave_out: LeaveOut | None = None,
    judge: Judge | None = None,
    recall: Recall | None = None,
    spool: Spool | None = None,
) -> Run:
    """Check ``targets`` in isolated workers, and collect every mistake without raising.

    Args:
        targets: what the user typed.
        settings: of the run.
        on_progress, on_tick: see ``gradlint.running.news``.
        examine: stands in for ``gradlint.checking.examine.examine`` in tests of the runner; a
            function that workers can import.
        listing: whether to say only what would run, and on which samples.
        leave_out: see :data:`LeaveOut`.
        judge: see :data:`Judge`.
        recall: verdicts of earlier runs; no worker is started where they are all that is needed.
        spool: what keeps the results; None for memory.

    Returns:
        The run; after Ctrl-C with what is known so far, ``report.interrupted`` set.
    """
    started = time.monotonic()
    trouble = Trouble()
    report = Report(
        seed=settings.seed,
        gradlint=gradlint.__version__,
        environment=environment(),
        fail_on=settings.fail_on,
        settings=_told(settings),
    )
    plan = _Plan(settings, trouble, on_progress, leave_out, judge, recall, spool)
    plan.examine, plan.listing, plan.on_tick = examine, listing, on_tick
    try:
        _carry_out(plan, targets, settings, report)
    except GradlintError as error:
        trouble.usage.append(error)
    except FileNotFoundError:
        if _is_somewhere():
            raise
        trouble.usage.append(
            GradlintError(
                "the folder in which gradlint ran was removed during the run",
                hint="an operator may have done so; run it again, with --untrusted",
            )
        )
    except _server.ServerLost as error:
        trouble.internal.append(f"{error}\n{error}")
    except KeyboardInterrupt:
        report.interrupted = True
    except Enough:
        report.stopped = True
    report.targets = plan.reports()
    if report.interrupted:
        _tell_interrupted(report, targets)
    if report.stopped:
        _tell_stopped(report)
    if not (listing or examine):
        add_suppression_findings(report, plan.settings)
    report.left_out = {why: [ref.target for ref in refs] for why, refs in plan.left_out.items()}
    report.skipped.update(plan.empty)
    report.duration_s = time.monotonic() - started
    report.errors += [RunError("usage", str(error)) for error in trouble.usage]
    report.errors += [RunError("internal", first_line(text)) for text in trouble.internal]
    return Run(report, trouble.usage, trouble.internal, plan.left_out)


def _told(settings: Settings) -> dict[str, Any]:
    """``settings`` as a report holds them."""
    told: dict[str, Any] = jsonable(settings)
    places = {"cache": settings.cache, "cluster": settings.cluster}
    return {**told, **{name: url and without_password(url) for name, url in places.items()}}


def _carry_out(plan: _Plan, targets: Sequence[str], settings: Settings, report: Report) -> None:
    """Find what ``targets`` name, and check it."""
    if not plan.remembers:
        _start_server(plan, settings)
    if settings.untrusted and settings.cluster is None:
        report.environment["confinement"] = confined(settings).means
    if settings.cluster is None:  # else the devices are those of its workers
        plan.settings = on_present_devices(settings, report)
    with interruptible():
        refs = plan.chosen(_resolved(targets, plan))
    plan.empty.update(
        {path: f"not an operator by itself: {what}" for path, what in left_out(refs).items()}
    )
    plan.divided = _divided(plan, refs)
    if not plan.remembers:
        _start_server(plan, settings, refs)
    workers = settings.jobs if any(r.attribute == EVERY for r in refs) else len(refs)
    plan.memory_mb = _memory.allowance(
        settings.memory_mb, max(1, min(settings.jobs, workers)), plan.settings.devices
    )
    with sanitizer(settings, present="cuda" in plan.settings.devices) as plan.sanitizer:
        plan.add(refs)
        if not plan.settings.devices:
            plan.skip_all(f"needs {', '.join(settings.devices)}, not available here")
            return
        _run(plan, settings, refs)


def _run(plan: _Plan, settings: Settings, refs: Sequence[OpRef]) -> None:
    """Run what is not known, here or on a cluster."""
    here = plan.to_run()
    if settings.cluster is not None:
        here = [task for task in here if isinstance(task, ExpandTask)]
    if plan.remembers and here:
        _start_server(plan, settings, refs)
    plan.tell_known(plan.tasks)
    schedule(in_turns(here, plan.settings, plan.memory_mb), settings.jobs, plan.tick)
    if settings.cluster is not None:
        inner = [task for expanded in plan.tasks for task in getattr(expanded, "tasks", [expanded])]
        tasks = [task for task in inner if isinstance(task, TargetTask)]
        if tasks:
            on_cluster(tasks, plan.settings, plan.tick)


def _traces(plan: _Plan) -> bool:
    """Whether rules are going to run that need the compiler."""
    selected = select_rules(plan.settings)
    return not plan.listing and any("torch.compile" in rule.needs for rule in selected)


def _divided(plan: _Plan, refs: Sequence[OpRef]) -> bool:
    """Whether two workers share the rules of the one operator. On a cluster they do not: there are
    many operators to keep its workers busy, and a division loads the compiler beside torch."""
    return (
        _traces(plan)
        and plan.examine is None
        and plan.settings.cluster is None
        and len(refs) == 1
        and refs[0].attribute != EVERY
        and _server.serves_once()
        and divisible(plan.settings)
    )


def _start_server(plan: _Plan, settings: Settings, refs: Sequence[OpRef] = ()) -> None:
    """Let torch load in the background; where ``refs`` are known, with all that helps then."""
    _server.start(
        "tracing" if _traces(plan) else "rules",
        _worth_reading(refs),
        private=settings.untrusted,
        many=len(refs) >= _server.MANY_OPERATORS,
        single=plan.divided,
    )


def run(
    targets: Sequence[str], settings: Settings, *, on_progress: Progress | None = None
) -> Report:
    """Check ``targets`` in isolated workers.

    Raises:
        GradlintError: the user's first mistake; the other targets were checked before.
        RuntimeError: gradlint itself failed; the message is the traceback of the worker.
        KeyboardInterrupt: Ctrl-C; every worker was ended.
    """
    done = execute(targets, settings, on_progress=on_progress)
    if done.report.interrupted:
        raise KeyboardInterrupt
    if done.internal:
        raise RuntimeError(f"internal error of gradlint:\n{done.internal[0]}")
    if done.usage:
        raise done.usage[0]
    return done.report


def environment() -> dict[str, Any]:
    """Versions that a report names, found without importing torch."""
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "platform": platform.platform(),
    }


def on_present_devices(settings: Settings, report: Report) -> Settings:
    """``settings`` with the devices that work here; those that do not are noted in the report.

    Raises:
        GradlintError: a device is absent, and the settings require all of them.
    """
    if all(device == "cpu" for device in settings.devices):
        return settings
    present = call_in_worker(DevicesWork(), timeout=_DEVICES_TIMEOUT)
    absent = [device for device in settings.devices if not present.get(device, False)]
    if absent and settings.require_device:
        raise GradlintError(
            f"{absent[0]} is not available here",
            place="--require-device",
            hint="run where it is, or leave --require-device out to skip its checks",
        )
    if "cuda" in absent and settings.sanitizer is not None:
        report.skipped["sanitizer"] = f"{settings.sanitizer}: watches cuda, not available here"
    for device in absent:
        report.skipped[device] = f"checks on {device}: not available here"
    left = tuple(device for device in settings.devices if device not in absent)
    return replace(settings, devices=left)


def _is_somewhere() -> bool:
    """Whether the current folder is still there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _tell_interrupted(report: Report, targets: Sequence[str]) -> None:
    """Say so of every target that was not begun, also where it is not known what they name."""
    report.targets = report.targets or [TargetReport(target) for target in targets]
    for number, target in enumerate(report.targets):
        if target.verdict == "skipped" and not target.notes:
            target.notes.append("interrupted")
            report.targets[number] = target


def _tell_stopped(report: Report) -> None:
    """Say of every target that was not done that enough others had failed."""
    for number, target in enumerate(report.targets):
        before = [*target.notes]
        if target.verdict == "skipped" and not target.notes:
            target.notes.append(NOT_REACHED)
        target.notes = [NOT_REACHED if note == "interrupted" else note for note in target.notes]
        if target.notes != before:
            report.targets[number] = target


def _resolved(targets: Sequence[str], plan: _Plan) -> list[OpRef]:
    refs: list[OpRef] = []
    for target in targets:
        try:
            found = resolve(target, plan.settings)
        except GradlintError as error:
            plan.trouble.usage.append(error)
            continue
        if not found:
            plan.empty[target] = NO_OPERATOR
        refs += found
    return refs


def _worth_reading(refs: Sequence[OpRef]) -> list[str]:
    """The files with so many operators that it pays to start the server anew, which parses them for
    all workers."""
    files = Counter(os.path.abspath(ref.location.file) for ref in refs if ref.location is not None)
    found = []
    for path, count in files.items():
        with suppress(OSError):
            if count * os.path.getsize(path) >= _WORTH_BYTES:
                found.append(path)
    return found


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
