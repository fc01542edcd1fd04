"""While a run is under way: a live display on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gradlint.base.terminal import clean, obeyed
from gradlint.cli import starting as _starting
from gradlint.model.report import TargetReport
from gradlint.model.rule import Stage
from gradlint.native.progress import Line, reporting, words
from gradlint.native.progress import Progress as BuildProgress
from gradlint.rules.catalogue import CATALOGUE, rule_names
from gradlint.running.news import Running

#: Seconds until a terminal shows anything, and between two drawings of it.
FIRST_S, PAUSE_S = 1.0, 0.2

#: Seconds between two lines in a log (heuristic: CI systems take minutes of silence for a hang).
LOG_S = 30.0

#: Operators in progress that are named; further ones are counted.
NAMED = 8

#: Findings of one operator in progress that are shown; further ones are counted.
FINDINGS = 4

#: Rules that look at the call itself come first, then those that measure first derivatives.
_FIRST = {rule.code: rule for rule in CATALOGUE if Stage.RUN <= rule.stage <= Stage.VALUES}

#: What the first verdict on an operator begins with.
FIRST_WORDS = "so far right"

#: A family of rules → what it is about, in the order in which it is said.
_ABOUT = {"value": "values", "shape": "shapes", "contract": "contract", "finite": "finiteness"}

#: A phase (of ``gradlint.ops.phase.PHASES``) → what is done then, in words.
_PHASES = {
    "start": "starting",
    "import": "importing",
    "inputs": "finding inputs",
    "forward": "in forward",
    "backward": "in backward",
    "rule": "measuring",
    "done": "finishing",
}


class Watch:
    """Is told how a run goes, and shows nothing.

    Args:
        clock: seconds, from any moment on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.failed = self.unjudged = 0

    def done(self, done: int, total: int, report: TargetReport) -> None:
        """A target is done."""
        self.failed += report.verdict == "fail"
        self.unjudged += report.verdict == "error"

    def tick(self, done: int, total: int, running: Sequence[Running]) -> None:
        """How far the run is."""

    def build(self, progress: BuildProgress) -> None:
        """How far an extension is that is being built."""

    def close(self) -> None:
        """The run is over."""

    def counts(self, done: int, total: int, running: Sequence[Running]) -> str:
        """``12 of 1000 operators done, 1 fails, 3 not judged; 2 running, 986 remaining``."""
        operators = len({item.target for item in running})
        fail = f", {self.failed} {'fails' if self.failed == 1 else 'fail'}" if self.failed else ""
        fail += f", {self.unjudged} not judged" if self.unjudged else ""
        left = max(total - done - operators, 0)
        return (
            f"{done} of {total} operator{'' if total == 1 else 's'} done{fail}; "
            f"{operators} running, {left} remaining"
        )


class LogWatch(Watch):
    """Writes a line every :data:`LOG_S` seconds, so that a long run is never silent."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream
        self._last = self._started

    def tick(self, done: int, total: int, running: Sequence[Running]) -> None:
        """Write a line if the last one is long ago."""
        now = self._clock()
        if now - self._last < LOG_S:
            return
        self._last = now
        longest = max(running, key=lambda item: item.seconds, default=None)
        what = f": {clean(longest.target)}, {at(longest)}" if longest is not None else ""
        counts = self.counts(done, total, running)
        self._stream.write(f"gradlint: {now - self._started:.0f} s, {counts}{what}\n")
        self._stream.flush()


class LiveWatch(Watch):
    """Draws what is done, what runs and what remains, over and over in the same place."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream
        self._line = Line(stream)
        self._live: Live | None = None
        self._drawn = self._started - PAUSE_S
        self._told = False
        self._build = ""

    def tick(self, done: int, total: int, running: Sequence[Running]) -> None:
        """Draw, unless the run is young or was just drawn; what is told first is told at once."""
        now = self._clock()
        told = any(so_far(item.report) for item in running)
        first = told and not self._told
        young = now - self._started < FIRST_S and not told
        if young or (now - self._drawn < PAUSE_S and not first):
            return
        self._drawn, self._told = now, self._told or told
        if self._live is None:
            self._line.clear()
            _starting.clear()
            # What it shows is clean, and the display moves by escape sequences.
            console = Console(file=obeyed(self._stream), markup=False, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        lines = [self.counts(done, total, running)]
        for item in running[:NAMED]:
            lines.append(f"  {clean(item.target)}  {at(item)}")
            lines += [f"    {clean(text)}" for text in so_far(item.report)]
        lines += [f"  and {len(running) - NAMED} more"] if len(running) > NAMED else []
        lines += [f"  {self._build}"] if self._build else []
        self._build = ""
        shown = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        self._live.update(shown, refresh=True)

    def build(self, progress: BuildProgress) -> None:
        """Keep it for the next drawing; before the first, it has a line of its own."""
        if self._live is None:
            self._line(progress)
        else:
            self._build = clean(words(progress))

    def close(self) -> None:
        """Leave nothing behind."""
        self._line.clear()
        _starting.clear()
        if self._live is not None:
            self._live.stop()


def at(item: Running) -> str:
    """``GL401 wrong_gradient, in backward (12 s)``: what a worker is at."""
    name = rule_names().get(item.code, "")
    work = f"{item.code} {name}".rstrip()
    phase = _PHASES.get(item.phase, item.phase)
    parts = [work, phase if item.phase in ("forward", "backward") or not work else ""]
    return f"{', '.join(filter(None, parts))} ({item.seconds:.0f} s)"


def so_far(report: TargetReport | None) -> list[str]:
    """What is known of an operator that is still being checked: first whether its gradients are
    right at the first sample, once that is known; then what was found."""
    if report is None:
        return []
    first = [check for check in report.checks if check.code in _FIRST]
    lines = []
    if len(first) < len(report.checks):  # others run after them
        bad = {
            _FIRST[check.code].family for check in first if check.verdict not in ("pass", "skipped")
        }
        good = {_FIRST[check.code].family for check in first if check.verdict == "pass"}
        right = [words for family, words in _ABOUT.items() if family in good - bad]
        lines += [f"{FIRST_WORDS}: {', '.join(right)}"] if right else []
    found = [item for item in report.findings if item.severity != "info"]
    names = rule_names()
    lines += [
        f"{item.code} {names.get(item.code, '')}: {item.message}" for item in found[:FINDINGS]
    ]
    if len(found) > FINDINGS:
        lines.append(f"and {len(found) - FINDINGS} more")
    return lines


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Watch]:
    """What to tell of a run: a live display on stderr if that is a terminal, else a line there now
    and then; nothing if ``quiet``."""
    watch = _watch(quiet)
    try:
        if isinstance(watch, LiveWatch):
            with reporting(watch.build):
                yield watch
        else:
            yield watch
    finally:
        watch.close()


def _watch(quiet: bool) -> Watch:
    if quiet or sys.stderr is None:
        return Watch()
    return LiveWatch(sys.stderr) if sys.stderr.isatty() else LogWatch(sys.stderr)
