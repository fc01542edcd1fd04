"""Does a confinement keep its promises here? Run in a process of its own, before anything else."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

from gradlint.running import confinement
from gradlint.running._linux import call
from gradlint.running.job import Confinement, Means

_PTRACE_ATTACH = 16


def main(means: Means, scratch: str, outsider: int, witness: str) -> None:
    """Say "confined" if each promise is kept, else what is not; ends this process.

    Args:
        means, scratch: of the :class:`gradlint.running.job.Confinement` to try.
        outsider: the id of a process outside.
        witness: a file outside that could be written before.
    """
    try:
        folders = confinement.enter(Confinement(means, scratch), keep=())
        with open(os.path.join(folders["TMPDIR"], "file"), "w") as file:
            file.write("1")
        _refused("the network", socket.socket)
        _refused("writing to files", lambda: os.open(witness, os.O_WRONLY))
        _refused("making files", lambda: os.mkdir(f"{witness}.d"))
        _refused("signals", lambda: _signal(outsider))
        _refused("ptrace", lambda: call("ptrace", _PTRACE_ATTACH, outsider, 0, 0))
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
    else:
        print("confined", flush=True)
    os._exit(0)  # nothing may be tidied that belongs to the process outside


def _signal(pid: int) -> None:
    if pid == os.getpid():  # numbers are given anew in a namespace
        raise ProcessLookupError
    os.kill(pid, 0)


def _refused(what: str, attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except OSError:
        return
    raise AssertionError(f"{what} is not refused")
