"""Reports how far a build is, at least once a second. Does not import torch."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from gradlint.base.terminal import clean, obeyed


@dataclass(frozen=True)
class Progress:
    """How far a build, or other work that takes long, is.

    Args:
        name: what is done, such as "building gradlint_reference".
        done: steps that are finished.
        total: steps that there are; 0 until that is known.
        doing: the file that was finished last, or what it waits for.
        seconds: since it began.
    """

    name: str
    done: int
    total: int
    doing: str
    seconds: float


Sink = Callable[[Progress], None]

_sink: ContextVar[Sink | None] = ContextVar("gradlint.native.progress", default=None)


@contextmanager
def reporting(sink: Sink) -> Iterator[None]:
    """Send the progress of every build in the body to ``sink``."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def pass_on(progress: Progress) -> None:
    """Report a build in another process to the sink of :func:`reporting`, if any."""
    sink = _sink.get()
    if sink is not None:
        sink(progress)


@contextmanager
def progress_sink(sink: Sink | None) -> Iterator[Sink]:
    """``sink``, else the one of :func:`reporting`, else a line on stderr if that is a terminal."""
    chosen = sink or _sink.get()
    if chosen is not None:
        yield chosen
        return
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda progress: None
        return
    line = Line(sys.stderr)
    try:
        yield line
    finally:
        line.clear()


class Line:
    """One line of a terminal that is written over again and again."""

    #: Seconds between two writes.
    PAUSE = 0.1

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show ``progress``."""
        now = time.monotonic()
        if now - self._last < self.PAUSE:
            return
        self._last = now
        self._write(words(progress))

    def clear(self) -> None:
        """Leave the line empty."""
        if self._last:
            self._write("")

    def _write(self, text: str) -> None:
        width = max(20, shutil.get_terminal_size().columns - 1)
        shown = clean(text)
        if cell_len(shown) > width:
            shown = set_cell_size(shown, width)
        stream = obeyed(self._stream)
        stream.write("\r\x1b[K" + shown)
        stream.flush()


def words(progress: Progress) -> str:
    """``progress`` in one line."""
    steps = f" {progress.done}/{progress.total}" if progress.total else ""
    doing = f", {progress.doing}" if progress.doing else ""
    return f"{progress.name}{steps} ({progress.seconds:.0f} s){doing}"
