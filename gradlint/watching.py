"""Checks again what was saved: rules of first order at once, all rules after them.

The server from which workers come stays, so that a check begins within milliseconds. Each worker
imports the user's modules afresh.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

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

#: What a person asks for: all checks anew, more or less of each report, changes of the source that
#: mend what was found, or the end.
#: A change of the source that was found is written only where "yes" comes after it was shown.
Key = Literal["rerun", "more", "fix", "yes", "no", "quit"]


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


class Mending(Protocol):
    """How changes of the source are found, shown and written."""

    def search(self, report: Report) -> bool:
        """Search for verified changes for what ``report`` says and show them; whether there are
        any."""

    def ask(self) -> None:
        """Ask whether to write what was shown."""

    def write(self) -> None:
        """Write what was shown, and say what came of it."""

    def leave(self) -> None:
        """Say that nothing is written."""


class _Overtaken(Exception):
    """Something happened while all rules ran: what they would say is not of interest any more."""


class Session:
    """Looks at ``targets`` again and again.

    Args:
        targets: what the user typed.
        settings: of every look; the seed stays, so that results can be compared.
        next_happening: waits a number of seconds at most for what happens next.
        show: is told of every look.
        mending: finds and writes changes of the source.
    """

    def __init__(
        self,
        targets: Sequence[str],
        settings: Settings,
        next_happening: Callable[[float], Happening],
        show: Callable[[Shown], None],
        mending: Mending | None = None,
    ) -> None:
        self._targets = list(targets)
        self._settings = settings
        self._next = next_happening
        self._show = show
        self._mending = mending
        self._offered = False
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
            if self._offered and happening is not None:
                self._answered(happening)
            if happening == "quit":
                return Report(list(self._last.values()), fail_on=self._settings.fail_on).exit_code
            if happening == "more":
                self._more = not self._more
                self._look(None)
            elif happening == "rerun":
                self._look(None)
            elif happening == "fix":
                self._mend()
            elif isinstance(happening, Files):
                self._look(happening)

    def _mend(self) -> None:
        """Show changes of the source that mend what was seen last, to be written if that is wanted
        then."""
        if self._mending is None:
            return
        report = Report(list(self._last.values()), fail_on=self._settings.fail_on)
        self._offered = self._mending.search(report)
        # What came meanwhile is no answer: the question is asked after it was taken.
        while (early := self._next(0.0)) is not None:
            if early not in ("yes", "no"):
                self._held = early
                break
        if self._offered:
            self._mending.ask()

    def _answered(self, happening: Files | Key) -> None:
        """Write what was offered, or withdraw it: whatever else happens, it may not fit any more.
        What is written is a save like any other."""
        self._offered = False
        if self._mending is None:
            return
        if happening == "yes":
            self._mending.write()
        else:
            self._mending.leave()

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
