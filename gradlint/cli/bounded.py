"""Runs a function in a process of its own that can neither take long nor grow large."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: How many times longer than its processor time the process may take on a clock: it shares the
#: machine with others. One that waits for something, such as a pipe, ends here.
_PATIENCE = 15

_DONE, _FAILED, _MEMORY = b"d", b"f", b"m"


class OutOfBounds(Exception):
    """The process took too long or too much memory."""


def in_bounds(
    function: Callable[[Any], Any], argument: Any, *, seconds: int, megabytes: int
) -> Any:
    """``function(argument)``, which must be something that JSON can say.

    Where processes can't be forked (Windows), it runs here and without bounds.

    Args:
        seconds: of processor time.
        megabytes: of data beyond what this process holds.

    Raises:
        OutOfBounds: it took more than that.
        RuntimeError: it failed; the text is its traceback.
    """
    if sys.platform == "win32":
        return function(argument)
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(function, argument, writer, seconds, megabytes)
    os.close(writer)
    try:
        received = _received(reader, time.monotonic() + seconds * _PATIENCE)
    finally:
        os.close(reader)
        # It has ended, or it never will.
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    how, body = received[:1], received[1:]
    if how == _FAILED:
        raise RuntimeError(body.decode(errors="replace"))
    if how != _DONE:
        raise OutOfBounds
    return json.loads(body)


def _received(reader: int, deadline: float) -> bytes:
    """All that comes until the other end is closed; nothing where that takes too long."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return b""
        part = os.read(reader, 2**16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _run(
    function: Callable[[Any], Any], argument: Any, writer: int, seconds: int, megabytes: int
) -> None:
    """The life of the process; never returns."""
    try:
        _confine(seconds, megabytes)
        try:
            answer = _DONE + json.dumps(function(argument)).encode()
        except MemoryError:
            answer = _MEMORY
        except Exception:
            answer = _FAILED + traceback.format_exc().encode(errors="backslashreplace")
        with open(writer, "wb") as channel:
            channel.write(answer)
    finally:
        os._exit(0)


def _confine(seconds: int, megabytes: int) -> None:
    import resource  # not on Windows

    # Ends the process wherever it is; a limit on processor time would count that of the parent.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    with suppress(OSError, ValueError), open("/proc/self/statm") as held:
        pages = int(held.read().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 2**20
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
