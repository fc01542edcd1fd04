"""The keeper of a worker: a process that ends whatever the worker leaves behind (Linux).

The server forks the keeper, and the keeper forks the worker. All that the operator's code starts
stays below the keeper, also what leaves its session and its parent, because the kernel hands
orphans to the nearest ancestor that asked for them (``PR_SET_CHILD_SUBREAPER``). So an operator
that stops or kills its parent harms its own keeper, and no neighbour.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from gradlint.running import _confine

#: Whether workers have a keeper on this platform.
KEPT = sys.platform == "linux"

#: Byte of the shared memory in which the keeper says 1 + the number of processes that it ended.
LEFT = 2

#: Seconds in which what serves a worker may end by itself once the worker is gone. Python and
#: PyTorch start such processes, which wait for the end of a pipe: the one that keeps the books of
#: multiprocessing's locks, or one that compiles (heuristic: they take a few hundredths).
_OWN_END_SECONDS = 0.5
#: Seconds after which a process that was killed and does not vanish is left to the kernel.
_GRAVE_SECONDS = 3.0
_PAUSE_SECONDS = 0.002

#: What a keeper does not die of; SIGTERM is the order to end.
_BLOCKED = ("SIGCHLD", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")


_server: int | None = None


def serve_from_here() -> None:
    """This process is the server: the keepers that it forks end with it."""
    global _server
    _server = os.getpid()


def keep(shared: Any, descriptors: Iterable[int]) -> None:
    """Fork. The child returns, and is the worker; this process keeps it, and ends as it does.

    Args:
        shared: memory shared with the parent; byte :data:`LEFT` is written.
        descriptors: which the worker alone must hold.
    """
    if not KEPT:
        return
    os.setsid()
    _confine.die_with_parent(signal.SIGTERM)
    _confine.adopt_orphans()
    _confine.leave_server()
    if _server not in (None, os.getppid()):
        os._exit(1)  # it ended before the kernel was asked to tell
    blocked = {getattr(signal, name) for name in _BLOCKED}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        _confine.die_with_parent()
        if os.getppid() != keeper:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    try:
        for descriptor in descriptors:
            os.close(descriptor)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        status = _wait_for(worker)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        shared[LEFT] = 1 + min(end_descendants(0.0 if killed else _OWN_END_SECONDS), 254)
        _end_as(status)
    finally:
        os._exit(1)


def end_descendants(patience: float = 0.0) -> int:
    """Kill the children of this process, and those that it inherits from them, until none is left.

    Args:
        patience: seconds in which they may end by themselves first.

    Returns:
        How many ended by a signal, this one or that of their parent's end.
    """
    ended = 0
    begin = time.monotonic() + patience
    give_up = begin + _GRAVE_SECONDS
    while time.monotonic() < give_up:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            ended += os.WIFSIGNALED(status)
            continue
        for child in children(os.getpid()) if time.monotonic() >= begin else ():
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)
    return ended


def children(pid: int) -> list[int]:
    """The processes whose parent is ``pid``, zombies included; empty where /proc does not tell."""
    found = []
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and _parent_of(name) == pid:
                found.append(int(name))
    return found


def _parent_of(name: str) -> int | None:
    # The second field may hold spaces and brackets (proc(5)).
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as told:
        return int(told.read().rpartition(b")")[2].split()[1])
    return None


def _wait_for(worker: int) -> int:
    """The wait status of ``worker``, which is killed when the order to end comes."""
    while True:
        if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
            os.kill(worker, signal.SIGKILL)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == worker:
                return status
            if pid == 0:
                break


def _end_as(status: int) -> None:
    """Exit with the code, or by the signal, of ``status``."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _confine.no_core_dump()
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)
