"""How a worker shuts itself in before it touches the user's code."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from typing import Any

#: Descriptors of gradlint's own pipes start here, out of the way of code that closes "all" of
#: the first few hundred. Heuristic: the usual soft limit of open files is 1024.
_FIRST_FD = 900

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

#: The signal that makes a worker print its Python stack; handled in C, so that it works in an
#: endless loop of C code too.
DUMP_SIGNAL = getattr(signal, "SIGUSR1", None)


def own_group(*, watched: bool = False) -> None:
    """Become leader of a new session and process group, ended when the parent process ends.

    Args:
        watched: whether a tool started this process, and not the server.
    """
    if not hasattr(os, "setsid"):
        return
    with suppress(OSError):
        os.setsid()
    if watched:
        return  # the parent that the kernel watches is a thread, which in a tool may end early
    die_with_parent()
    leave_server()


def die_with_parent(number: int | None = None) -> None:
    """Have the kernel send ``number`` to this process, SIGKILL unless one is given, when the thread
    that forked it ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if number is None else number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        with suppress(Exception):
            ctypes.CDLL(None).prctl(option, int(argument), 0, 0, 0)


def leave_server() -> None:
    """Close what keeps the server, and the resource tracker, alive.

    They end when the last holder of these descriptors is gone. A hung worker must not keep them,
    and thereby itself, alive after gradlint was killed.
    """
    server: Any = getattr(forkserver, "_forkserver", None)
    tracker: Any = getattr(resource_tracker, "_resource_tracker", None)
    for holder, name in ((server, "_forkserver_alive_fd"), (tracker, "_fd")):
        descriptor = getattr(holder, name, None)
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)
            setattr(holder, name, None)
    if server is not None:
        server._forkserver_address = None


def normal_signals() -> None:
    """Signals as a fresh Python has them; the server blocks SIGINT and handles SIGTERM."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def move_up(fd: int) -> int:
    """A duplicate of ``fd`` at a high number, closed on exec; ``fd`` itself is closed."""
    try:
        import fcntl  # noqa: PLC0415 (not on Windows)

        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD)
    except (ImportError, OSError):
        return fd
    os.close(fd)
    return moved


def redirect(output: int) -> None:
    """Send descriptors 1 and 2 to ``output`` and read nothing from 0."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if null > 2:
        os.close(null)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        stream = open(  # noqa: SIM115
            fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if output > 2:
        os.close(output)


def show_stack_on_death(dumps: int) -> None:
    """Write the Python stack to ``dumps`` on a fatal signal and on :data:`DUMP_SIGNAL`."""
    faulthandler.enable(file=dumps, all_threads=True)
    if DUMP_SIGNAL is not None and hasattr(faulthandler, "register"):
        faulthandler.register(DUMP_SIGNAL, file=dumps, all_threads=True, chain=False)


def no_core_dump() -> None:
    """Leave no file behind when a signal ends this process."""
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def limit_memory(allowance_mb: int | None) -> None:
    """No core dumps, and at most ``allowance_mb`` MiB of data beyond what is held now (Linux)."""
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return
    no_core_dump()
    held = _data_bytes()
    if allowance_mb is None or held is None:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = held + allowance_mb * 2**20
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _data_bytes() -> int | None:
    # RLIMIT_DATA counts private writable mappings since Linux 4.7: VmData of proc(5).
    with suppress(OSError, ValueError, IndexError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None
