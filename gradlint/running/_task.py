"""One target on its way through workers: what to run next, and what its end means."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gradlint.base import errors
from gradlint.base.errors import GradlintError
from gradlint.base.notes import WITHOUT_CASTS
from gradlint.base.scratch import scratch_folder
from gradlint.checking.severity import as_set
from gradlint.model.events import FURTHER, Confirmable, Event
from gradlint.model.op import OpRef
from gradlint.model.report import Check, Confirmation, Finding, TargetReport
from gradlint.model.settings import Settings
from gradlint.native.progress import pass_on
from gradlint.rules.catalogue import rule_of, select_rules
from gradlint.running import findings as _findings
from gradlint.running._collect import Collector
from gradlint.running._compiling import COMPILING, CompilingTask
from gradlint.running._process import Ending
from gradlint.running.events import (
    Account,
    Building,
    Confirmed,
    Forgery,
    Hello,
    Internal,
    LastWord,
    NoInputs,
    OpRaised,
    OutOfMemory,
    Pid,
    Replaced,
    Touched,
    Unavailable,
    Unloadable,
    Usage,
)
from gradlint.running.findings import Scene, final_finding
from gradlint.running.items import Result
from gradlint.running.job import CheckWork, ConfirmWork, Examine, Job
from gradlint.running.news import Running

_WRONG_GRADIENT = rule_of("value.wrong_gradient")
_PASSES_ONLY_WHILE_CHECKED = rule_of("loading.passes_only_while_checked")

#: Stands for a rule's code while a pass is confirmed.
CONFIRMATION = "confirmation"

#: Said of a target that was ended by the time limit of its item.
OVER_ITS_TIME = "ended: it took longer than its item may"

#: Crashes after which a target is given up. A time-out at a place where one was before weighs
#: two, since every further one costs the whole time again.
MOST_CRASHES = 3


@dataclass
class Trouble:
    """What went wrong apart from the ops: the user's mistakes, and gradlint's own failures (a line
    that says what, then the traceback)."""

    usage: list[GradlintError] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)

    def add_internal(self, target: str, account: Account) -> None:
        """Add what a worker reported of a failure of gradlint's own on ``target``."""
        self.internal.append(f"{target}: {account.line}\n{account.traceback}")


class Enough(Exception):
    """The run ends here: nothing more is to be checked."""


class Task(Protocol):
    """Work for one worker after another.

    Args:
        timeout: seconds between two events of a worker.
        until: when all of it must be done, on the monotonic clock.
    """

    timeout: float
    until: float

    def job(self) -> Job:
        """What the next worker is to do."""

    def event(self, event: Event) -> None:
        """Something came from the worker.

        Raises:
            Contradiction: it can't be true.
        """

    def ended(self, ending: Ending) -> list[Task]:
        """The worker is gone. Returns what is to run next for this task."""

    def restart(self) -> None:
        """Forget what came: the worker was lost, and another one starts from the beginning."""

    def running(self, phase: str) -> Running:
        """What is being done, by a worker that is in ``phase``."""

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for what comes of it."""


#: Share of the time-out that a call may have taken when it came, so that the op counts as slow and
#: not as hanging (heuristic: then at least a few calls have returned since the last event).
RETURNS = 0.25


class TargetTask:
    """Checks one operator, in as many workers as its crashes call for.

    Args:
        ref: the operator; settings: of the run; trouble: takes what is not the operator's fault.
        memory_mb, examine, listing: see ``Job`` and ``CheckWork``.
        finished: told of the report when it is complete.
        divided: whether a second worker, of :attr:`compiling`, runs the rules that compile.
        position: of the operator in the run, as in its report.
        run: see :class:`ConfirmWork`.
    """

    wanted = True

    def __init__(
        self,
        ref: OpRef,
        settings: Settings,
        trouble: Trouble,
        *,
        memory_mb: int | None = None,
        examine: Examine | None = None,
        listing: bool = False,
        finished: Callable[[TargetTask], None] | None = None,
        divided: bool = False,
        position: Sequence[int] = (),
        run: str = "",
    ) -> None:
        self.compiling: CompilingTask | None = None
        if divided:
            self.compiling = CompilingTask(ref, settings, memory_mb, self._compiled)
        self.ref = ref
        self.settings = settings
        self.timeout = settings.timeout
        self.until = float("inf")
        self._trouble = trouble
        self._memory_mb = memory_mb
        self._examine = examine
        self._listing = listing
        self._finished = finished
        self._position = position
        self._run = run
        self._begun = False
        self._report: TargetReport | None = None
        self._collecting: Collector | None = None
        self.restart()

    @property
    def report(self) -> TargetReport:
        """What is known up to now. It is made when it is asked for, as is what collects it: a run
        may have thousands of tasks that are not begun."""
        if self._report is None:
            location = _findings.relative(self.ref.location)
            self._report = TargetReport(self.ref.target, self.ref.kind, location=location)
            self._report.position = [*self._position]
        return self._report

    @property
    def _collector(self) -> Collector:
        if self._collecting is None:
            complete = self._examine is None and not self._listing
            self._collecting = Collector(self.report, self.settings, complete=complete)
        return self._collecting

    def restart(self) -> None:
        """Begin with an empty report; all rules run in one worker then."""
        if self.compiling is not None and self._begun:
            self._without_compiling()
        self._report = self._collecting = None
        self._last: LastWord | None = None
        self._touched: Touched | None = None
        self._unsteady = ""
        self._over = False
        self._waiting = self._concluded = False
        self._asked: ConfirmTask | None = None
        self._crashes = 0
        self._left = 0
        self._started = time.monotonic()

    def release(self) -> None:
        """Hold nothing more of the report: it is complete, and kept elsewhere."""
        self._report = self._collecting = None
        self._touched = None
        self._last = None

    def job(self) -> Job:
        """Check what is not done yet."""
        if self._crashes == 0:
            self._started = time.monotonic()
        self._last = None
        self._begun = True
        self._collector.next_worker()
        done = frozenset(self._collector.done)
        self._collector.elsewhere = COMPILING if self.compiling is not None else frozenset()
        work = CheckWork(
            self.ref,
            self.settings,
            done,
            self._examine,
            self._listing,
            self._collector.elsewhere,
        )
        return Job(work, self._memory_mb)

    def event(self, event: Event) -> None:
        """Collect it, or remember it as the reason for the end that follows."""
        if isinstance(event, LastWord):
            self._last = event
            if isinstance(event, Forgery):
                self._collector.distrust()
            return
        match event:
            case Hello() | Pid():
                pass
            case Touched() if self.settings.cache is not None and self._touched is None:
                self._touched = event
            case Building(progress):
                pass_on(progress)
            case Unavailable(reason):
                self._collector.excuse()
                self.report.notes.append(reason)
            case Usage():
                self._collector.excuse()
                error = usage_error(event)
                self._trouble.usage.append(error)
                self.report.notes.append(str(error))
                self.report.verdict = "error"
            case Unloadable():
                self._collector.excuse()
                self._add(_findings.unloadable(self.ref, self.settings, event))
            case NoInputs():
                self._collector.excuse()
                self._add(_findings.no_inputs(self.ref, self.settings, event))
            case _:
                self._collector.take(event)

    def ended(self, ending: Ending) -> list[Task]:
        """Say what happened; go on with the remaining rules in a fresh worker after a crash, and
        have a pass confirmed."""
        self._left += ending.left
        if ending.killed is not None or not ending.finished or ending.lost:
            self.unsteady("did not run to its end in one worker")
        if ending.left:
            self.unsteady("left processes running")
        regular = ending.killed is None and ending.finished and self._last is None
        if self.compiling is not None and regular and not self._collector.excused:
            return self._wait_for(self.compiling)
        self._without_compiling()
        return self._ended(ending)

    def _ended(self, ending: Ending) -> list[Task]:
        if ending.killed is None and ending.lost:
            self._add(self._finding(ending))
            return self._finish()
        if ending.killed == "limit":
            self._over = True
            self._collector.give_up_current()
            return self._finish(interrupted=not ending.finished)
        if ending.killed == "interrupt" or (ending.finished and self._last is None):
            return self._finish(interrupted=not ending.finished)
        again = self._blame(ending)
        if not self.report.samples:
            return self._finish()
        self._crashes += 2 if again and ending.killed == "timeout" else 1
        if self._crashes < MOST_CRASHES:
            self._collector.give_up_current()
            return [self]
        self._collector.give_up_current()
        self._skip_rest()
        return self._finish()

    def running(self, phase: str) -> Running:
        """The rule that is running, if any."""
        code = self._collector.current[0] if self._collector.current is not None else ""
        seconds = time.monotonic() - self._started
        return Running(self.ref.target, phase, code, seconds, self.report)

    @property
    def may_take_turns(self) -> bool:
        """Whether its worker may check other operators before and after, if their files let it."""
        return (
            type(self) is TargetTask
            and self.ref.source == "file"
            and self.ref.overlay is None
            and self.compiling is None
            and self._examine is None
            and not self._listing
            and self.until == float("inf")
            and self.settings.devices == ("cpu",)
            and not self.settings.untrusted
            and not self.settings.imports
        )

    @property
    def begun(self) -> bool:
        """Whether a worker was asked for."""
        return self._begun

    def cancel(self) -> None:
        """Nobody waits for it any more: its workers end, and what is known then is the result."""
        self.wanted = False
        for other in (self.compiling, self._asked):
            if other is not None:
                other.wanted = False

    def confirmed(self) -> None:
        """Nothing more is to be found out.

        Untrusted code may have prevented the confirmation: without one, nothing is known."""
        found = self.report.confirmation
        unconfirmed = found is not None and found.verdict == "not confirmed"
        if self.settings.untrusted and unconfirmed and self.report.verdict == "pass":
            self.report.verdict = "inconclusive"
        self.report.duration_s = time.monotonic() - self._started
        self._collector.forget()
        self._asked = None
        if self._finished is not None:
            self._finished(self)

    def seen(self) -> tuple[tuple[str, ...], str]:
        """The files that its worker read, and why its verdict may depend on more than on them, or
        on the moment; in words that complete "it …"."""
        report, touched = self.report, self._touched
        why = ""
        if self._unsteady or touched is None:
            why = self._unsteady or "did not run to its end in one worker"
        elif not report.judged:
            why = "could not be judged"
        elif any(check.could_not_run or "--timeout" in check.note for check in report.checks):
            why = "has checks that could not run"
        elif touched.unseen:
            why = touched.unseen[0]
        return tuple(touched.files) if touched is not None else (), why

    def answered(self) -> None:
        """Add what confirms the pass to the report, once that and all rules have ended."""
        if self._concluded and self._asked is not None and self._asked.ending is not None:
            self._asked.conclude(self._asked.ending)
            self.confirmed()

    def failed_to_confirm(self, account: Account) -> None:
        """gradlint itself failed."""
        self.unsteady("could not be confirmed")
        self._trouble.add_internal(self.ref.target, account)

    def adopt(self, result: Result) -> None:
        """All of it was done elsewhere: take what came of it.

        Raises:
            Enough: nothing more is to be checked.
        """
        made = result.report
        if made is not None and made.target == self.ref.target:
            made.position = [*self._position]
            self._report = made
        else:
            self.report.verdict = "error"
        self._trouble.internal += result.internal
        for mistake in result.usage:
            told = Usage(mistake.error, mistake.message, mistake.place, mistake.hint)
            self._trouble.usage.append(usage_error(told))
            if made is None:
                self.report.notes.append(mistake.message)
        self._touched = Touched(result.files, [])
        # A verdict is kept for the machine that it was found out on.
        elsewhere = result.host != socket.gethostname()
        self._unsteady = result.why or ("was checked on another machine" if elsewhere else "")
        if self._finished is not None:
            self._finished(self)

    def unsteady(self, why: str) -> None:
        """Another run may come to another verdict; ``why`` completes "it …"."""
        self._unsteady = self._unsteady or why

    # -- inner workings -------------------------------------------------------------------------

    def _wait_for(self, compiling: CompilingTask) -> list[Task]:
        """All rules of this task's own have ended. Returns what is to run meanwhile."""
        self._waiting = True
        if compiling.over:
            return self._compiled()
        self._asked = self._to_confirm() if self._collector.verdict == "pass" else None
        return [] if self._asked is None else [self._asked]

    def _compiled(self, *, interrupted: bool = False) -> list[Task]:
        """The rules that compile have ended. Returns what is to run next: where their results can't
        be used, a worker that runs them after all others."""
        if self.compiling is None or not self._waiting:
            return []
        self._waiting = False
        results = self.compiling.results(self.report.samples)
        if results is None or not self._collector.fill_in(results):
            self._without_compiling()
            return self._finish(interrupted=True) if interrupted else [self]
        self._add_touched(self.compiling)
        self.compiling = None
        return self._finish()

    def _add_touched(self, compiling: CompilingTask) -> None:
        """The verdict depends on what either worker read."""
        if compiling.left:
            self.unsteady("left processes running")
        ours, theirs = self._touched, compiling.touched
        if ours is None or theirs is None:
            self._touched = None
            return
        files = dict.fromkeys([*ours.files, *theirs.files])
        self._touched = Touched([*files], [*ours.unseen, *theirs.unseen])

    def _without_compiling(self) -> None:
        """Use nothing of the rules that compile, and let the next worker run them."""
        if self.compiling is not None:
            self.unsteady("did not run to its end in one worker")
            self.compiling.wanted = False
            self.compiling = None
        self._collector.do_without()

    def _blame(self, ending: Ending) -> bool:
        """Add the finding for ``ending``; True if the same was found before."""
        if isinstance(self._last, OpRaised) and ending.killed is None:
            account = self._last.account
            self._collector.op_raised(account.phase, account.line)
            return False
        if isinstance(self._last, Internal) and ending.killed is None:
            self._trouble.add_internal(self.ref.target, self._last.account)
            self.report.notes.append(
                f"internal error of gradlint in {_running(self._collector.current)}: "
                f"{self._last.account.line}"
            )
            return False
        if self._left_out(ending):
            return False
        if not isinstance(self._last, (Forgery, Replaced)):
            how = "timed out" if ending.killed == "timeout" else "process crashed"
            if self._collector.accepts_end(f"{how} while it ran"):
                return False
        return not self._is_slow(ending) and self._add(self._finding(ending))

    def _is_slow(self, ending: Ending) -> bool:
        """Whether a time-out says only that calls at inputs of gradlint's choice take long; it is
        noted then."""
        if ending.killed != "timeout" or ending.phase not in ("forward", "backward"):
            return False
        if self._collector.chose_inputs():
            self._collector.too_slow(ending.phase, self.timeout)
            return True
        returned = ending.called_s < RETURNS * self.timeout
        return returned and self._collector.took_long(ending.phase, self.timeout)

    def _left_out(self, ending: Ending) -> bool:
        """Whether what was running could not end for what gradlint chose or kept, and is noted."""
        if isinstance(self._last, OutOfMemory) and ending.killed is None:
            return self._collector.memory_ran_out()
        current = self._collector.current
        if ending.killed == "timeout" and current is not None and current[0] == FURTHER:
            # The arguments were gradlint's choice: that the op takes long there is no fault.
            self._collector.add_note(f"not tried {current[1]}: too slow")
            return True
        return False

    def _finding(self, ending: Ending) -> Finding:
        scene = Scene(
            self.ref,
            self.settings,
            ending.phase,
            self._collector.current,
            ending.stack,
            ending.tail,
            tried=ending.tried,
        )
        finding = final_finding(scene, self._last, ending)
        sought = self.settings.inputs is None and not self.report.samples
        # In the phase "inputs" the operator's own `sample_inputs` may have run.
        own = any(frame.function == "sample_inputs" for frame in ending.stack.frames)
        if sought and ending.phase in ("forward", "backward", "inputs") and not own:
            _findings.at_guessed_inputs(finding, ending.tried)
        return finding

    def _add(self, finding: Finding) -> bool:
        """Add it, or its rule to the same finding made before (then True)."""
        finding = as_set(finding, self.settings)
        for other in self.report.findings:
            if _signature(other) != _signature(finding):
                continue
            rules = str(other.evidence.get("rule") or "").split(", ")
            if finding.evidence.get("rule") not in (None, *rules):
                other.evidence["rule"] = ", ".join([*rules, str(finding.evidence["rule"])])
            return True
        self.report.findings.append(finding)
        return False

    def _skip_rest(self) -> None:
        reason = f"not run: {MOST_CRASHES} workers ended on this target before"
        for sample in self.report.samples:
            for rule in select_rules(self.settings):
                if rule.has_probe and (rule.code, sample.label) not in self._collector.done:
                    self.report.checks.append(
                        Check(rule.code, "skipped", sample.label, note=reason)
                    )

    def _finish(self, *, interrupted: bool = False) -> list[Task]:
        """Come to a verdict. Returns what is to confirm it, if it is a pass."""
        if self._left:
            self._collector.add_note(processes_left(self._left))
        before = self.report.verdict
        self._collector.finish()
        if before == "error":
            self.report.verdict = "error"
        if interrupted:
            self.report.notes.append(OVER_ITS_TIME if self._over else "interrupted")
            if self.report.verdict == "pass":  # of the rules that ran, and not of all
                self.report.verdict = "inconclusive"
        if self.report.verdict != "pass":
            if self._asked is not None:
                self._asked.wanted = False
                self.report.confirmation = None
            self.confirmed()
            return []
        self._concluded = True
        if self._asked is not None:  # while the rules that compile were under way
            self.answered()
            return []
        self._asked = self._to_confirm()
        if self._asked is None:
            self.confirmed()
            return []
        return [self._asked]

    def _to_confirm(self) -> ConfirmTask | None:
        """What is to confirm a pass, if that can be done."""
        call, self._collector.confirmable = self._collector.confirmable, None
        if call is None or self.report.kind == "formula" or not _confirms(self.settings):
            return None
        if self.ref.overlay is not None:  # the process that confirms reads the file as it is
            return None
        reason = call.reason or _why_not_measured(self.report, call.sample)
        self.report.confirmation = Confirmation("not confirmed", reason or "interrupted")
        return None if reason else ConfirmTask(self, call, self._memory_mb, self._run)


class ConfirmTask:
    """Has the pass of a target confirmed where the op can't reach.

    Args:
        target: what passes; call: what is repeated.
        memory_mb, run: as of :class:`ConfirmWork`.

    Attributes:
        wanted: whether the target still passes.
        ending: how it ended, once it has.
    """

    def __init__(
        self, target: TargetTask, call: Confirmable, memory_mb: int | None, run: str
    ) -> None:
        self.timeout = target.timeout
        self.until = target.until
        self._target = target
        # A worker that is confined can't write there.
        folder = None if target.settings.untrusted else scratch_folder()
        work = ConfirmWork(target.ref, target.settings, call, memory_mb, folder, run)
        self._job = Job(work, memory_mb)
        self.wanted = True
        self.restart()

    def restart(self) -> None:
        """Forget what came."""
        self.ending: Ending | None = None
        self._answer: Confirmed | None = None
        self._reason = "the process that judges it ended"

    def job(self) -> Job:
        """The one job."""
        return self._job

    def event(self, event: Event) -> None:
        """Keep the answer, or why there is none."""
        match event:
            case Confirmed():
                self._answer = event
            case Internal(account):
                self._target.failed_to_confirm(account)
                self._reason = f"internal error of gradlint: {account.line}"
            case Usage():
                self._reason = event.message

    def running(self, phase: str) -> Running:
        """What the target is at: it is looked at once more."""
        return replace(self._target.running(phase), code=CONFIRMATION)

    def ended(self, ending: Ending) -> list[Task]:
        """Keep how it ended until the target is done with all else."""
        self.ending = ending
        self._target.answered()
        return []

    def conclude(self, ending: Ending) -> None:
        """Add what came of it to the report."""
        report = self._target.report
        answer = self._answer if ending.finished else None
        if answer is not None:
            report.confirmation = answer.confirmation
            if answer.confirmation.verdict == "refuted":
                finding = _findings.wrong_by_itself(
                    self._target.ref, self._target.settings, report, answer.wrong
                )
                report.findings.append(as_set(finding, self._target.settings))
                report.verdict = "fail"
        elif ending.killed is None:
            report.confirmation = Confirmation("not confirmed", self._reason)
            self._target.unsteady("could not be confirmed")
        elif ending.killed == "limit":
            report.confirmation = Confirmation("not confirmed", OVER_ITS_TIME)
            self._target.unsteady("could not be confirmed in time")
        elif ending.killed == "timeout":
            note = f"it took longer than {self.timeout:g} s"
            report.confirmation = Confirmation("not confirmed", note)
            self._target.unsteady("could not be confirmed in time")


def _confirms(settings: Settings) -> bool:
    """Whether passes are confirmed: where gradients are judged, unless the settings ignore the
    rule. It need not be selected, like all that the runner observes."""
    judged = _WRONG_GRADIENT in select_rules(settings)
    return judged and _PASSES_ONLY_WHILE_CHECKED in select_rules(replace(settings, select=None))


def _why_not_measured(report: TargetReport, sample: str) -> str:
    """Why nothing is to be confirmed: a gradient that GL401 did not find plainly right there."""
    passed = [
        check
        for check in report.checks
        if check.code == _WRONG_GRADIENT.code and check.sample == sample and check.verdict == "pass"
    ]
    if not passed:
        return f"{_WRONG_GRADIENT.code} {_WRONG_GRADIENT.name} did not judge its gradient"
    if any(WITHOUT_CASTS in check.note for check in passed):
        return f"its gradient was {WITHOUT_CASTS} a coarser dtype, which it has by itself"
    if any(f.code.startswith("GL4") and f.sample == sample for f in report.findings):
        return "its gradient is not plainly right"
    return ""


def processes_left(count: int) -> str:
    """The note on a target whose code left ``count`` processes running."""
    return f"{count} process{'es' if count > 1 else ''} that it left running ended with its worker"


def usage_error(event: Usage) -> GradlintError:
    """The error that a worker reported."""
    kind = getattr(errors, event.error, GradlintError)
    if kind is errors.SpecError or not (isinstance(kind, type) and issubclass(kind, GradlintError)):
        kind = GradlintError
    error: GradlintError = kind(event.message, place=event.place, hint=event.hint)
    return error


def _signature(finding: Finding) -> tuple[Any, ...]:
    evidence = finding.evidence
    keys = ("changes",) if "changes" in evidence else ("phase", "signal", "exit_code", "traceback")
    ending = [evidence.get(key) for key in keys]
    return (finding.code, finding.location, *map(str, ending))


def _running(current: tuple[str, str] | None) -> str:
    return f"{current[0]} on sample {current[1]}" if current is not None else "no rule"
