"""Signals that end a run: they take effect where it waits, so that it ends in order.

An exception that comes at any moment may leave a report half written, or a worker that nobody
knows of. Here the handlers only remember; what waits, for workers mostly, does so in
:func:`interruptible`, and only there is ``KeyboardInterrupt`` raised, once. Where no handlers were
installed (gradlint as a library) the body of :func:`interruptible` is interrupted as any code is.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Ctrl-C; the order to end; the end of the terminal.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

#: Signals after which the process ends where it is, without a report. Two are common for one wish:
#: a terminal and a wrapper such as ``timeout`` both send one.
_MOST_SIGNALS = 3


class Signals:
    """The signals received.

    Args:
        first: the number of the first; None as long as there was none.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self._count = 0
        self._raised = False
        self._open = False

    @property
    def exit_code(self) -> int:
        """Of a run that the first signal ended: 130 for Ctrl-C, 143 for the others."""
        return 130 if self.first in (None, signal.SIGINT) else 143

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of every signal."""
        self._count += 1
        self.first = number if self.first is None else self.first
        if self._count >= _MOST_SIGNALS:
            os._exit(self.exit_code)  # the server and the workers end with this process
        if self._open:
            self._interrupt()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """In the body the first signal raises ``KeyboardInterrupt``, also if it came before."""
        if self._open:
            yield
            return
        self._open = True
        try:
            if self.first is not None:
                self._interrupt()
            yield
        finally:
            self._open = False

    def _interrupt(self) -> None:
        if not self._raised:
            self._raised = True
            raise KeyboardInterrupt


_current: Signals | None = None


@contextmanager
def guarded(*, for_good: bool = False) -> Iterator[Signals]:
    """Hold signals back in the body, apart from what is :func:`interruptible`.

    Args:
        for_good: whether the handlers stay when the body is left, since the process ends then.
    """
    global _current
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # no handler can be installed
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    # A signal that is ignored (nohup) stays ignored.
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    outer, _current = _current, signals
    before = {number: signal.signal(number, signals.handle) for number in numbers}
    try:
        yield signals
    finally:
        if not for_good:
            _current = outer
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """The body waits, and may be left at any moment by ``KeyboardInterrupt``."""
    if _current is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _current.opened():
        yield


def block() -> None:
    """Let this process, which is about to end, end with the exit code that it chose.

    Python ends itself by SIGINT, whatever code was asked for, where the first one came while a
    string was executed (``dataclasses`` does so on import; ``exit_sigint`` of CPython's
    ``Modules/main.c``), and takes its handlers away while it shuts down.
    """
    if hasattr(signal, "pthread_sigmask"):
        numbers = {getattr(signal, name) for name in _NAMES}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
