"""The life of a worker: shut itself in, do one job, say how it ended, and exit without tidying.

The parent imports this module to name :func:`serve`, so torch is imported by the functions here.
"""

from __future__ import annotations

import gc
import importlib
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from multiprocessing.connection import Connection
from multiprocessing.heap import Arena
from types import FrameType
from typing import Any

from gradlint.base.text import short_text
from gradlint.model import report as _report
from gradlint.model.events import Emit, Event
from gradlint.ops.phase import PHASES, install
from gradlint.running import _compiler, _confine, _keeper, _touched, _wire, confinement
from gradlint.running.events import (
    Account,
    Building,
    Done,
    Exiting,
    Forgery,
    FrameRow,
    Hello,
    Internal,
    LastWord,
    OpRaised,
    OutOfMemory,
    Pid,
    Raised,
    Replaced,
    Touched,
    Turn,
    TurnOver,
    Usage,
)
from gradlint.running.job import (
    AuditWork,
    BenchWork,
    BuildWork,
    CallWork,
    CheckWork,
    ConfirmWork,
    DevicesWork,
    Job,
    LearnWork,
    ReproduceWork,
    SeveralWork,
    StarterWork,
    Work,
)
from gradlint.targets.bytecode import distrust_bytecode
from gradlint.trace.originals import at_the_start

_real_exit = os._exit

#: Exit status of a worker that can't reach the parent: its channel was closed by the user's code.
CHANNEL_GONE = 97

#: Phases in which the user's code runs.
USER_PHASES = ("import", "inputs", "forward", "backward")

#: Size of the memory that a worker shares with its parent, and where in it stand the time at which
#: the user's code was entered last, by the clock of the system that all processes share, and, after
#: its size, a text that says with which arguments.
SHARED_BYTES, ENTERED, TRIED = 512, 8, 16
TIME, SIZE = struct.Struct("d"), struct.Struct("H")

#: Bound before an operator can replace them.
_write_time, _now = TIME.pack_into, time.monotonic

#: What may be sent while the user's code runs; anything else was sent by that code.
_SENT_BY_USERS = (Building, Exiting, Forgery)


def serve(
    job: Job,
    key: bytearray,
    events: Connection,
    output: Connection,
    dumps: Connection,
    shared: Arena,
) -> None:
    """Entry of a worker process; returns only under a tool that watches it.

    Args:
        job: what to do.
        key: of this worker's frames; wiped here.
        events, output, dumps: write ends of the channel for events, and of the pipes for what the
            user's code prints and for Python stacks.
        shared: memory of :data:`SHARED_BYTES`: the phase, the last one that ran the user's code,
            how many processes were ended with the worker (``_keeper.LEFT``), from byte
            :data:`ENTERED` on when that code was entered last, and from :data:`TRIED` on with what.
    """
    preloaded = "torch" in sys.modules
    watched = job.interpreter is not None
    if not watched and job.runs_users_code:
        _keeper.keep(shared.buffer, [end.fileno() for end in (events, output, dumps)])
    _confine.own_group(watched=watched)
    if job.runs_users_code:
        _leave_zygote()  # whose processes are not confined
    folders, refusal = _confined(job, (events.fileno(), output.fileno(), dumps.fileno()))
    watch = PhaseWatch(shared.buffer)
    channel = Channel(_confine.move_up(_detach(events)), key, watch)
    key[:] = bytes(len(key))
    _confine.redirect(_detach(output))
    _confine.show_stack_on_death(_confine.move_up(_detach(dumps)))
    _confine.normal_signals()
    if not watched:
        os.environ.clear()
    os.environ.update({**job.environment, **folders})
    install(watch.enter, watch.told)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=watch.in_child)
    os._exit = channel.exit  # type: ignore[assignment]
    channel.send(Hello(preloaded))
    if watched:
        channel.send(Pid(os.getpid()))
    if refusal is None:
        _attempt(job, channel, watch)
    else:
        channel.send(refusal)
        channel.send(Done())
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    if watched:
        _settle()
        return
    _real_exit(0)  # threads that the user's code left running must not hold it up


def _leave_zygote() -> None:
    """Give up the way to the zygote, if this process has one. Its module imports torch."""
    zygote = sys.modules.get("gradlint.running._zygote")
    if zygote is not None:
        zygote.leave()


def _settle() -> None:
    """Wait for the device, so that what it still does is seen; leave the rest to Python's end."""
    import torch  # noqa: PLC0415 (the parent imports this module without torch)

    with suppress(Exception):
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()


def _confined(job: Job, keep: tuple[int, ...]) -> tuple[dict[str, str], Usage | None]:
    """Enter the confinement that ``job`` asks for: variables of the environment that say where to
    write, and why nothing may run if it can't be had."""
    if job.confinement is None:
        return {}, None
    try:
        return confinement.enter(job.confinement, keep), None
    except Exception as error:
        told = confinement.failed(error)
        return {}, Usage("GradlintError", told.message, told.place, told.hint)


def _attempt(job: Job, channel: Channel, watch: PhaseWatch) -> None:
    try:
        import torch  # noqa: PLC0415 (the parent imports this module without torch)

        torch.set_num_threads(1)
        if isinstance(job.work, CheckWork) and job.work.only:
            _compiler.load_compiler()
    except Exception as error:  # the fault of neither an op nor gradlint
        channel.send(_no_torch(error))
        channel.send(Done())
        return
    distrust_bytecode()
    if isinstance(job.work, SeveralWork):
        _in_turns(job.work, job.memory_mb, channel, watch)
        return
    channel.send_last(_ended(job.work, job.memory_mb, channel, watch) or Done())


def _in_turns(
    work: SeveralWork, memory_mb: int | None, channel: Channel, watch: PhaseWatch
) -> None:
    """Do one work after another, until one of them does not end as it should or its operator may
    have left something behind: other workers do the rest."""
    turn = importlib.import_module("gradlint.running._turns").turn  # loads torch
    for number, one in enumerate(work.works):
        channel.send(Turn(number))
        # What confirms runs none of the user's code here.
        around = turn(one.ref.path) if isinstance(one, CheckWork) else nullcontext()
        with around as left:
            last = _ended(one, memory_mb, channel, watch)
        if last is not None:
            channel.send_last(last)
            return
        channel.send(TurnOver())
        if left is not None and left.behind:
            break
    channel.send_last(Done())


def _ended(
    work: Work[Any], memory_mb: int | None, channel: Channel, watch: PhaseWatch
) -> LastWord | None:
    """Do ``work``, and tell why it did not end as it should; None if it did."""
    from gradlint.trace.global_state import Needs  # noqa: PLC0415 (loads torch)
    from gradlint.trace.judge_integrity import (  # noqa: PLC0415 (loads torch)
        JudgeChanged,
        judge_at_the_start,
    )

    do = _doer(work)
    originals = at_the_start()
    needs = Needs()
    # What confirms asks others to run the user's code, which so can't change anything here.
    runs_it = hasattr(work, "ref") and not isinstance(work, ConfirmWork)
    judge = judge_at_the_start() if runs_it else None
    try:
        _confine.limit_memory(memory_mb)
        do(work, channel.send)
        if judge is not None and (changed := judge.changed()):
            raise JudgeChanged(changed)
    except MemoryError as error:
        return OutOfMemory(_account(error, watch))
    except JudgeChanged as error:
        return Replaced(_account(error, watch, "done"), error.names)
    except Exception as error:
        # First of all: what tells of the error needs those functions too.
        replaced = originals.blamed(error) or (judge.changed() if judge is not None else [])
        settings = needs.changed(error) if judge is not None else []
        return _last_word(error, watch, replaced, settings)
    except BaseException as error:
        return Raised(_account(error, watch))
    return None


def _last_word(
    error: Exception, watch: PhaseWatch, replaced: list[str], settings: list[str]
) -> LastWord:
    """What to say of ``error``, which the work ended with.

    Args:
        replaced: names of functions that user code replaced, which may be to blame.
        settings: the same, of settings of torch.
    """
    from gradlint.experiments.raised_errors import (  # noqa: PLC0415 (loads torch)
        is_out_of_memory,
    )
    from gradlint.trace.op_io import OpRaised as RaisedByOp  # noqa: PLC0415 (loads torch)

    if isinstance(error, RaisedByOp):
        return OpRaised(_account(error.error, watch, error.phase))
    account = _account(error, watch)
    if replaced:
        return Replaced(account, replaced)
    if settings:
        return Replaced(account, settings, settings=True)
    return OutOfMemory(account) if is_out_of_memory(error) else Internal(account)


def _doer(work: Work[Any]) -> Callable[[Work[Any], Emit], None]:
    """The function that does ``work``. Its module imports torch, hence not at the top here; a
    server that was started for building alone has not imported the rules."""
    name = "jobs"
    if isinstance(work, (DevicesWork, BuildWork, BenchWork, CallWork)):
        name = "tool_jobs"
    elif isinstance(work, (StarterWork, ReproduceWork, LearnWork, AuditWork)):
        name = "rare_jobs"
    run: Callable[[Work[Any], Emit], None] = importlib.import_module(f"gradlint.running.{name}").run
    return _watched(run) if _is_kept(work) else run


def _is_kept(work: Work[Any]) -> bool:
    """Whether its verdict may be kept for later runs."""
    return isinstance(work, CheckWork) and work.settings.cache is not None


def _watched(run: Callable[[Work[Any], Emit], None]) -> Callable[[Work[Any], Emit], None]:
    """``run``, which says at the end what was read meanwhile."""

    def watched(work: Work[Any], send: Emit) -> None:
        _touched.watch()
        run(work, send)
        send(Touched(*_touched.touched()))

    return watched


def _no_torch(error: Exception) -> Usage:
    return Usage(
        "GradlintError",
        f"torch can't be imported: {type(error).__name__}: {error}",
        "",
        "Install PyTorch 2.6 or later in this environment; `gradlint env` shows what is there.",
    )


class Channel:
    """The way to the parent, usable by the worker itself only: not by forks of it, nor while the
    user's code runs.

    Args:
        fd: what to write to.
        key: of the frames.
        watch: knows whether the user's code is running.
    """

    def __init__(self, fd: int, key: bytearray, watch: PhaseWatch) -> None:
        self._fd = fd
        self._owner = os.getpid()
        self._watch = watch
        self._sealer = _wire.Sealer(key)
        # Threads of the user's code may call os._exit at any time.
        self._lock = threading.RLock()

    def send(self, event: Event) -> None:
        """Send one event; a process forked by the user's code ends here instead.

        Raises:
            ImportError: the op took gradlint's modules away, so that its rules would be imported
                anew and fail in odd ways later.
        """
        if os.getpid() != self._owner:
            _real_exit(0)
        if not isinstance(event, _SENT_BY_USERS):
            if sys.modules.get(_report.__name__) is not _report:
                raise ImportError("the modules of gradlint are not in sys.modules")
            if self._watch.in_user_code:
                what = f"code of the op sent a {type(event).__name__} through the worker's channel"
                event = Forgery(what, tuple(_rows(traceback.walk_stack(sys._getframe(1)))))
        with self._lock:
            frame = self._sealer.frame(event)
            try:
                _wire.write_all(self._fd, frame)
            except OSError:
                _real_exit(CHANNEL_GONE)
        if isinstance(event, Forgery):
            _real_exit(CHANNEL_GONE)

    def send_last(self, event: Event) -> None:
        """Send an event although memory may be short."""
        with suppress(MemoryError):
            self.send(event)

    def exit(self, status: int = 0) -> None:
        """Stands in for ``os._exit``, to say from where it was called."""
        if os.getpid() == self._owner:
            with suppress(BaseException):
                self.send(Exiting(int(status), _rows(traceback.walk_stack(_caller()))))
        _real_exit(status)


class PhaseWatch:
    """Keeps the shared bytes up to date, and ends forks that come back out of the user's code."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared
        self.last_user_phase = "start"
        self.in_user_code = False

    def enter(self, index: int) -> None:
        """The sink that :func:`gradlint.ops.phase.install` is given."""
        self._shared[0] = index
        self.in_user_code = PHASES[index] in USER_PHASES
        if self.in_user_code:
            self._shared[1] = index
            _write_time(self._shared, ENTERED, _now())
            self.last_user_phase = PHASES[index]

    def told(self, text: str) -> None:
        """Keep the arguments that are tried next, as far as there is room."""
        start = TRIED + SIZE.size
        written = text.encode("utf-8", "replace")[: SHARED_BYTES - start]
        SIZE.pack_into(self._shared, TRIED, len(written))
        self._shared[start : start + len(written)] = written

    def in_child(self) -> None:
        """In a process forked by the user's code: to leave its phase is to end."""
        _confine.die_with_parent()
        install(lambda index: _real_exit(0))


def _account(error: BaseException, watch: PhaseWatch, phase: str = "") -> Account:
    """What is told about an exception that ended the job; drops what its frames hold."""
    code = getattr(error, "code", None) if isinstance(error, SystemExit) else None
    frames = _rows(traceback.walk_tb(error.__traceback__))
    chained: BaseException | None = error
    while chained is not None:
        # Where memory ran out, the frames hold it; nothing can be told before they let go.
        with suppress(BaseException):
            traceback.clear_frames(chained.__traceback__)
        chained = chained.__cause__ or chained.__context__
    gc.collect()
    return Account(
        error=type(error).__name__,
        text=_safely(lambda: str(error))[:2000],
        code=int(code) if isinstance(code, int) else None if code is None else short_text(code),
        phase=phase or watch.last_user_phase,
        frames=frames[::-1],
        traceback=_safely(lambda: "".join(traceback.format_exception(error)))[-20000:],
    )


def _rows(levels: Iterator[tuple[FrameType, int]]) -> list[FrameRow]:
    return [(frame.f_code.co_filename, line or 0, frame.f_code.co_name) for frame, line in levels]


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
