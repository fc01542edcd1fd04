"""The life of a worker: shut itself in, do one job, say how it ended, and exit without tidying.

Events it sends on its own, beside those of its job:

``hello``      True if torch was loaded by the server
``pid``        its process id, where it runs under a tool, whose id is known alone
``exiting``    the user's code called ``os._exit``: status and Python stack
``raised``     an exception that is no ``Exception`` came out: its text, phase and stack
``memory``     memory ran out: its text and stack
``op_raised``  the op raised where nobody expected it: its phase and text
``replaced``   gradlint failed because the user's code replaced functions that it calls: their names
``internal``   gradlint itself failed: a traceback
``done``       the job is finished
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from gradlint.ops.phase import PHASES, install
from gradlint.running import _confine, _wire
from gradlint.running._job import Job
from gradlint.trace.originals import at_the_start

Send = Callable[[str, Any], None]

_real_exit = os._exit

#: Exit status of a worker that can't reach the parent: its pipe was closed by the user's code.
PIPE_GONE = 97

#: Phases in which the user's code runs.
USER_PHASES = ("import", "inputs", "forward", "backward")


def serve(job: Job, events: Connection, output: Connection, dumps: Connection, phase: Any) -> None:
    """Entry of a worker process; returns only under a tool that watches it.

    Args:
        job: what to do.
        events, output, dumps: write ends of the pipes for events, for what the user's code
            prints, and for Python stacks.
        phase: two shared bytes: the phase, and the last one that ran the user's code.
    """
    preloaded = "torch" in sys.modules
    watched = job.interpreter is not None
    _confine.own_group(watched=watched)
    channel = Channel(_confine.move_up(_detach(events)))
    _confine.redirect(_detach(output))
    _confine.show_stack_on_death(_confine.move_up(_detach(dumps)))
    _confine.normal_signals()
    if not watched:
        os.environ.clear()
    os.environ.update(job.environment)
    importlib.invalidate_caches()
    watch = PhaseWatch(phase)
    install(watch.enter)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=watch.in_child)
    os._exit = channel.exit  # type: ignore[assignment]
    channel.send("hello", preloaded)
    if watched:
        channel.send("pid", os.getpid())
    _attempt(job, channel, watch)
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    if watched:
        _settle()
        return
    _real_exit(0)  # threads that the user's code left running must not hold it up


def _settle() -> None:
    """Wait for the device, so that what it still does is seen; leave the rest to Python's end."""
    import torch

    with suppress(Exception):
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()


def _attempt(job: Job, channel: Channel, watch: PhaseWatch) -> None:
    try:
        import torch

        torch.set_num_threads(1)
    except Exception as error:  # no fault of an op's, nor of gradlint's
        channel.send("usage", _no_torch(error))
        channel.send("done", None)
        return
    originals = at_the_start()
    try:
        _confine.limit_memory(job.memory_mb)
        module, _, name = job.function.partition(":")
        getattr(importlib.import_module(module), name)(channel.send, *job.arguments)
    except MemoryError as error:
        channel.send_last("memory", _account(error, watch))
    except Exception as error:
        # First of all: what tells of the error needs those functions too.
        replaced = originals.blamed(error)
        from gradlint.trace.op_io import OpRaised

        if isinstance(error, OpRaised):
            channel.send_last("op_raised", {**_account(error.error, watch), "phase": error.phase})
        elif replaced:
            channel.send_last("replaced", {**_account(error, watch), "replaced": replaced})
        else:
            channel.send_last("internal", _account(error, watch))
    except BaseException as error:
        channel.send_last("raised", _account(error, watch))
    else:
        channel.send_last("done", None)


def _no_torch(error: Exception) -> dict[str, Any]:
    return {
        "class": "GradlintError",
        "message": f"torch can't be imported: {type(error).__name__}: {error}",
        "place": "",
        "hint": "Install PyTorch 2.6 or later in this environment; `gradlint env` shows what is "
        "there.",
    }


class Channel:
    """The way to the parent, usable by the worker itself only, not by forks of it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._owner = os.getpid()

    def send(self, kind: str, payload: Any) -> None:
        """Send one event; a process forked by the user's code ends here instead."""
        if os.getpid() != self._owner:
            _real_exit(0)
        frame = _wire.encode(kind, payload)
        try:
            _wire.write_all(self._fd, frame)
        except OSError:
            _real_exit(PIPE_GONE)

    def send_last(self, kind: str, payload: Any) -> None:
        """Send an event although memory may be short."""
        with suppress(MemoryError):
            self.send(kind, payload)

    def exit(self, status: int = 0) -> None:
        """Stands in for ``os._exit``, to say from where it was called."""
        if os.getpid() == self._owner:
            with suppress(BaseException):
                frames = [
                    (frame.f_code.co_filename, line, frame.f_code.co_name)
                    for frame, line in traceback.walk_stack(_caller())
                ]
                self.send("exiting", {"status": int(status), "frames": frames})
        _real_exit(status)


class PhaseWatch:
    """Keeps the shared bytes up to date, and ends forks that come back out of the user's code."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared
        self.last_user_phase = "start"

    def enter(self, index: int) -> None:
        """The sink that :func:`gradlint.ops.phase.install` is given."""
        self._shared[0] = index
        if PHASES[index] in USER_PHASES:
            self._shared[1] = index
            self.last_user_phase = PHASES[index]

    def in_child(self) -> None:
        """In a process forked by the user's code: to leave its phase is to end."""
        _confine.die_with_parent()
        install(lambda index: _real_exit(0))


def _account(error: BaseException, watch: PhaseWatch) -> dict[str, Any]:
    """What is told about an exception that ended the job; drops what its frames hold."""
    code = getattr(error, "code", None) if isinstance(error, SystemExit) else None
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    chained: BaseException | None = error
    while chained is not None:
        # Where memory ran out, the frames hold it; nothing can be told before they let go.
        with suppress(BaseException):
            traceback.clear_frames(chained.__traceback__)
        chained = chained.__cause__ or chained.__context__
    gc.collect()
    from gradlint.model.sample import short_text

    return {
        "type": type(error).__name__,
        "text": _safely(lambda: str(error))[:2000],
        "code": code if isinstance(code, int) or code is None else short_text(code),
        "phase": watch.last_user_phase,
        "frames": frames[::-1],
        "traceback": _safely(lambda: "".join(traceback.format_exception(error)))[-20000:],
    }


def _safely(tell: Callable[[], str]) -> str:
    try:
        return tell()
    except BaseException as second:
        return f"(can't be shown: {type(second).__name__})"


def _caller() -> FrameType:
    return sys._getframe(2)


def _detach(connection: Connection) -> int:
    fd = os.dup(connection.fileno())
    connection.close()
    return fd
