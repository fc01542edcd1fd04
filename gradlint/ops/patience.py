"""A limit of processor time for calls of an op on values or sizes that a check chose itself.

Such a call may take far longer than those on the user's own sample: a solver that does not converge
for a magnitude of 10000, a loop over the elements of a larger tensor. That says nothing against the
op, so the call is ended and the check goes on without it. Processor time counts, and not the clock,
so that a busy machine ends nothing.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

#: Calls that may run into the limit in one check; after those, further ones are refused unasked.
MOST_SLOW = 2


class TooSlow(BaseException):
    """The call took longer than it was given; not an Exception, which ops may catch."""


class NotTried(RuntimeError):
    """What a call that was too slow counts as: a refusal, with the words for a note."""


@dataclass
class Patience:
    """How long calls on chosen inputs may take.

    Args:
        seconds: of processor time, for one call.
        slow: words for the calls that took longer.
    """

    seconds: float
    slow: list[str] = field(default_factory=list)

    @property
    def note(self) -> str:
        """What was not tried, in words; else ""."""
        return f"not tried: too slow at {', '.join(dict.fromkeys(self.slow))}" if self.slow else ""

    @contextmanager
    def limit(self, words: Callable[[], str]) -> Iterator[None]:
        """Run the body within the limit.

        Args:
            words: describes the call; asked where it is too slow.

        Raises:
            NotTried: it took longer, or others did before.
        """
        if len(self.slow) >= MOST_SLOW:
            raise NotTried(self.note)
        try:
            with _timer(self.seconds):
                yield
        except TooSlow:
            self.slow.append(words())
            raise NotTried(self.note) from None


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Raise :class:`TooSlow` in the body after ``seconds`` of processor time, where the platform
    has such a timer and this is the main thread, the only one that gets signals. An import is let
    run to its end, and the time begins anew: PyTorch imports its compiler on the first use of some
    functions, and what is imported by halves raises in every call from then on."""
    if not hasattr(signal, "setitimer") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    around = _imports(sys._getframe())

    def ring(number: int, frame: FrameType | None) -> None:
        if _imports(frame) == around:
            raise TooSlow
        signal.setitimer(signal.ITIMER_PROF, seconds)

    before: Any = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before if before is not None else signal.SIG_DFL)


def _imports(frame: FrameType | None) -> int:
    """How many frames of the import system ``frame`` runs in: more than before where a module is
    being imported."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return count
