"""The rules that load torch's compiler, run in a worker of their own while the others run.

The compiler takes as long to load as torch itself. Where a single operator is checked, the server
does not load it: the rules that need it run in a second worker, which loads it while the first one
runs all others. Their results take the places in the report that they would have had. Where
anything is out of the ordinary (an end that is not regular, other samples, another guess), nothing
of them is used, and these rules run in a successor of the first worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from gradlint.model.events import CheckDone, Event, Found
from gradlint.model.op import OpRef
from gradlint.model.report import Check, Finding, SampleReport, TargetReport
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE, select_rules
from gradlint.running._collect import Collector
from gradlint.running._process import Ending
from gradlint.running.events import (
    Building,
    Hello,
    LastWord,
    NoInputs,
    Pid,
    Touched,
    Unavailable,
    Unloadable,
    Usage,
)
from gradlint.running.job import CheckWork, Job
from gradlint.running.news import Running

#: Codes of the rules that load the compiler. They look at the first sample only.
COMPILING = frozenset(rule.code for rule in CATALOGUE if "torch.compile" in rule.needs)


def divisible(settings: Settings) -> bool:
    """Whether the rules of one operator can be divided between two workers under ``settings``: both
    kinds are selected, and what one may do does not depend on what the other has done."""
    codes = {rule.code for rule in select_rules(settings) if rule.has_probe}
    return (
        bool(codes & COMPILING)
        and bool(codes - COMPILING)
        and settings.jobs > 1
        and settings.devices == ("cpu",)
        and settings.max_calls is None
        and settings.sanitizer is None
        and not settings.untrusted
    )


class CompilingTask:
    """Runs the rules that compile, for the task that checks the operator.

    Args:
        ref, settings: as of that task.
        memory_mb: of the worker.
        ended: told of the end, and whether the run was interrupted; returns the tasks that follow.

    Attributes:
        wanted: whether that task still waits for it.
        over: whether nothing more comes.
        touched: what its worker read, where the verdict may be kept; left: processes that it left.
    """

    def __init__(
        self,
        ref: OpRef,
        settings: Settings,
        memory_mb: int | None,
        ended: Callable[..., list[Any]],
    ) -> None:
        self.timeout = settings.timeout
        self.until = float("inf")
        self.wanted = True
        self._ref = ref
        self._settings = settings
        self._ended = ended
        self._job = Job(CheckWork(ref, settings, only=COMPILING), memory_mb)
        self.restart()

    def restart(self) -> None:
        """Forget what came."""
        self.over = self._regular = False
        self.touched: Touched | None = None
        self.left = 0
        self._report = TargetReport(self._ref.target, self._ref.kind)
        # It holds the events against each other, as it does those of the first worker.
        self._collector = Collector(self._report, self._settings, complete=False)
        self._checks: dict[tuple[str, str], Check] = {}
        self._findings: dict[tuple[str, str], list[Finding]] = {}
        self._failed = False
        self._started = time.monotonic()

    def job(self) -> Job:
        """The one job."""
        self._started = time.monotonic()
        return self._job

    def event(self, event: Event) -> None:
        """Keep what the rules found, each for itself."""
        match event:
            case Hello() | Pid() | Building():
                return
            case Touched():
                self.touched = event
                return
        if isinstance(event, LastWord | Unavailable | Usage | Unloadable | NoInputs):
            self._failed = True  # the first worker says so too
        if self._failed:
            return
        self._collector.take(event)
        pair = self._collector.current
        match event:
            case CheckDone(check):
                self._checks[check.code, check.sample or ""] = check
            case Found(finding) if pair is not None:
                self._findings.setdefault(pair, []).append(finding)

    def results(
        self, samples: Sequence[SampleReport]
    ) -> dict[tuple[str, str], tuple[Check, list[Finding]]] | None:
        """The verdict and the findings by code and label of the sample; None if they can't be used.

        Args:
            samples: those of the other task; on others, the results mean nothing.
        """
        there = {sample.label: sample for sample in samples}
        same = all(there.get(sample.label) == sample for sample in self._report.samples)
        if not (self._regular and same):
            return None
        return {pair: (check, self._findings.get(pair, [])) for pair, check in self._checks.items()}

    def ended(self, ending: Ending) -> list[Any]:
        """Say so to the other task."""
        self.over = True
        self.left = ending.left
        self._regular = ending.finished and ending.killed is None and not self._failed
        return self._ended(interrupted=ending.killed == "interrupt")

    def running(self, phase: str) -> Running:
        """The rule that is running, if any."""
        current = self._collector.current
        code = current[0] if current is not None else ""
        seconds = time.monotonic() - self._started
        return Running(self._ref.target, phase, code, seconds, self._report)
