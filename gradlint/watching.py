"""Checks again what was saved: rules of first order at once, all rules after them.

The server from which workers come stays, so that a check begins within milliseconds. Each worker
imports the user's modules afresh.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gradlint.gate.changed import Saved, unchanged
from gradlint.model.op import OpRef
from gradlint.model.report import Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.interruption import interruptible
from gradlint.running.news import Running
from gradlint.running.run import Run, execute

#: Families of rules that run first: loading, the contract of backward, shapes, NaN and values.
FIRST_ORDER = ("GL0", "GL1", "GL2", "GL301", "GL302", "GL401", "GL403", "GL405")

#: Endings of the files that are looked at.
ENDINGS = (".py", ".yaml", ".yml", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".toml")

#: Seconds between two looks whether anything happened.
_PAUSE_S = 0.2

#: What a person asks for: all checks anew, more or less of each report, or the end.
Key = Literal["rerun", "more", "quit"]


@dataclass(frozen=True)
class Files:
    """Files that were saved, and when the last of them was (as ``time.time`` counts)."""

    paths: frozenset[str]
    at: float


#: What happens meanwhile; ``None`` after a wait in which nothing did.
Happening = Files | Key | None


@dataclass(frozen=True)
class Shown:
    """What came of one look.

    Args:
        run: over the operators that were looked at.
        stage: whether only the rules of first order ran.
        seconds: since the files were saved; since it began, for the first look.
        more: whether everything is to be shown.
    """

    run: Run
    stage: Literal["first order", "all"]
    seconds: float
    more: bool


class _Overtaken(Exception):
    """Something happened while all rules ran: what they would say is not of interest any more."""


class Session:
    """Looks at ``targets`` again and again.

    Args:
        targets: what the user typed.
        settings: of every look; the seed stays, so that results can be compared.
        next_happening: waits a number of seconds at most for what happens next.
        show: is told of every look.
    """

    def __init__(
        self,
        targets: Sequence[str],
        settings: Settings,
        next_happening: Callable[[float], Happening],
        show: Callable[[Shown], None],
    ) -> None:
        self._targets = list(targets)
        self._settings = settings
        self._next = next_happening
        self._show = show
        self._more = False
        self._held: Happening = None
        self._last: dict[str, TargetReport] = {}

    def run(self) -> int:
        """Look, wait and look again, until the end is asked for.

        Returns:
            The exit code that a check of what was seen last would have.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        self._look(None)
        while True:
            happening, self._held = self._held or self._next(_PAUSE_S), None
            if happening == "quit":
                return Report(list(self._last.values()), fail_on=self._settings.fail_on).exit_code
            if happening == "more":
                self._more = not self._more
                self._look(None)
            elif happening == "rerun":
                self._look(None)
            elif isinstance(happening, Files):
                self._look(happening)

    def _look(self, files: Files | None) -> None:
        """Look at what ``files`` concern; at everything where there are none."""
        since = files.at if files is not None else time.time()
        leave_out = self._leaving_out(files)
        selected = self._settings.select
        chosen = FIRST_ORDER if selected is None else selected
        # Passes are confirmed when all rules have run.
        ignored = (*self._settings.ignore, "GL009")
        quick = replace(self._settings, select=chosen, ignore=ignored, order=1)
        try:
            first = execute(self._targets, quick, leave_out=leave_out, on_tick=self._overtaken)
            self._tell(first, "first order", since)
            if first.report.interrupted:
                raise KeyboardInterrupt
            if not first.report.targets and not first.usage:
                return
            whole = execute(
                self._targets, self._settings, leave_out=leave_out, on_tick=self._overtaken
            )
        except _Overtaken:
            return
        self._tell(whole, "all", since)
        if whole.report.interrupted:
            raise KeyboardInterrupt

    def _leaving_out(self, files: Files | None) -> Callable[[OpRef], str] | None:
        if files is None:
            return None
        saved = Saved(files.paths, os.getcwd())
        return lambda ref: unchanged(saved, self._settings, ref)

    def _tell(self, run: Run, stage: Literal["first order", "all"], since: float) -> None:
        if not (run.report.targets or run.usage or run.internal):
            return  # what was saved concerns no operator
        self._last.update({target.target: target for target in run.report.targets})
        self._show(Shown(run, stage, time.time() - since, self._more))

    def _overtaken(self, done: int, total: int, running: Sequence[Running]) -> None:
        self._held = self._held or self._next(0.0)
        if self._held is not None:
            raise _Overtaken


def folders_of(targets: Iterable[str]) -> list[str]:
    """The folders that are watched: the working directory, and those of targets outside of it."""
    here = os.getcwd()
    found = {here}
    for target in targets:
        path = os.path.realpath(target.partition(":")[0])
        if os.path.exists(path) and not f"{path}{os.sep}".startswith(here.rstrip(os.sep) + os.sep):
            found.add(path if os.path.isdir(path) else os.path.dirname(path))
    return sorted(found)


def waiting(take: Callable[[float], Happening]) -> Callable[[float], Happening]:
    """``take``, during which Ctrl-C takes effect."""

    def taken(seconds: float) -> Happening:
        with interruptible():
            return take(seconds)

    return taken
