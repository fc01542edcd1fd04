"""Record which part of the user's code is running, for a process that watches from outside.

A worker installs a sink (a few bytes of shared memory). After a crash or a hang, the parent reads
from it whether forward or backward was running. Without a sink, entering a phase costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

#: Names of the phases in the order of a run; the sink receives a position in this tuple.
PHASES = ("start", "import", "inputs", "forward", "backward", "rule", "done")

_sink: Callable[[int], None] | None = None
_told: Callable[[str], None] | None = None
_current = 0


def install(sink: Callable[[int], None] | None, told: Callable[[str], None] | None = None) -> None:
    """Send every later phase, as an index into :data:`PHASES`, to ``sink``, and what :func:`trying`
    says to ``told``."""
    global _sink, _told
    _sink, _told = sink, told


def trying(arguments: Callable[[], str]) -> None:
    """Say what the user's code is about to be called with, if anybody watches."""
    if _told is not None:
        _told(arguments())


class _Phase:
    """A context manager, with slots because it is entered twice for every call of the op."""

    __slots__ = ("_before", "_index")

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        self._before = _current
        _enter(self._index)

    def __exit__(self, *_: object) -> None:
        _enter(self._before)


def phase(name: str) -> _Phase:
    """Mark the body as running in phase ``name``; afterwards the previous phase is restored."""
    return _Phase(PHASES.index(name))


def _enter(index: int) -> None:
    global _current
    _current = index
    if _sink is not None:
        _sink(index)
