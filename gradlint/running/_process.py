"""The parent's side of one worker: its pipes, its deadline, and how it ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import heap
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from gradlint.base import clock
from gradlint.model.events import Event
from gradlint.ops.phase import PHASES
from gradlint.running import _builds, _confine, _keeper, _stack, _wire, _worker, confinement
from gradlint.running import server as _server
from gradlint.running.events import Done, Forgery, Pid
from gradlint.running.job import Job

if sys.platform == "linux":
    import fcntl


#: Bytes kept of what a worker prints.
TAIL_BYTES = 64 * 1024

#: Seconds that a worker is given to print its stack before it is killed, and between two parts of
#: it (generous: on a busy machine it has to wait for its turn).
_DUMP_SECONDS = 3.0
_DUMP_PAUSE = 0.2

#: Seconds that a killed worker may take to vanish before the parent goes on without it.
_GRAVE_SECONDS = 5.0

#: Chunks read of a pipe after the worker's death; a process that escaped may still fill it.
_DRAIN_CHUNKS = 256

#: Pipe buffer asked for on Linux, so that a flood of output costs few context switches.
_PIPE_BYTES = 1 << 18


@dataclass(frozen=True)
class Ending:
    """How a worker ended.

    Args:
        exit_code: its status; negative for the signal that killed it; None if it never vanished.
        killed: why the parent killed it ("timeout", "interrupt"), or None.
        phase: the phase it was in.
        user_phase: the last phase that ran the user's code.
        stack: its Python stack, as far as it could be had.
        tail: the last of what it printed.
        finished: whether its job was done.
        lost: whether the server ended, and took the worker with it.
        orphaned: whether the worker's keeper ended before it did.
        left: how many processes that the op had started were ended with the worker.
        called_s: for how long the user's code had run when it was killed, since it was entered
            last; 0 where it was not running.
        tried: the arguments that were tried last while inputs were looked for; "" if none were.
    """

    exit_code: int | None
    killed: str | None
    phase: str
    user_phase: str
    stack: _stack.Stack
    tail: str
    finished: bool
    lost: bool = False
    orphaned: bool = False
    left: int = 0
    called_s: float = 0.0
    tried: str = ""

    @property
    def signal_name(self) -> str | None:
        """Such as "SIGSEGV", if a signal ended it."""
        if self.exit_code is None or self.exit_code >= 0:
            return None
        try:
            return signal.Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"


class Worker:
    """A running worker. Args: ``job``, and ``timeout``, seconds between two of its events."""

    def __init__(self, job: Job, timeout: float) -> None:
        self._job = job = confinement.applied(job)
        self._events: _wire.Receiver | None = None
        self._readers: dict[Connection, Callable[[bytes], None]] = {}
        self._pending: list[Event] = []
        self._tail = bytearray()
        self._dumped = bytearray()
        self._finished = False
        self._phases: tuple[str, str] | None = None
        self._called_s = 0.0
        self.killed: str | None = None
        self.ending: Ending | None = None
        self._watched = job.interpreter is not None
        self._kept = _keeper.KEPT and not self._watched and job.runs_users_code
        # The worker's own process: what was started is its keeper, or a tool that watches it.
        self._group: int | None = None
        self._sender: int | None = None
        self._refused = False
        private = job.confinement is not None
        self._process, self._server = _server.launch(
            self._prepared, job.interpreter, timeout=timeout, private=private
        )
        if not self._watched and not self._kept:
            self._sender = self._process.pid
        self.timeout = timeout
        self.grant()

    @contextmanager
    def _prepared(self) -> Iterator[Any]:
        """In the body, a process that is to be started, with pipes, key and memory of its own.

        A server that ends while it starts a process may have started it already: what that one
        writes must not be taken for what the next one writes.
        """
        self._close()
        context = _server.context(self._job.interpreter)
        # Memory of its own: what an op does to the descriptor of it concerns no other worker.
        self._phase = heap.Arena(_worker.SHARED_BYTES)
        key = _wire.new_key()
        events, write_events = _wire.channel(context)
        output, write_output = context.Pipe(duplex=False)
        dumps, write_dumps = context.Pipe(duplex=False)
        writers = (write_events, write_output, write_dumps)
        self._events = events
        self._readers = {output: self._on_output, dumps: self._on_dumps}
        self._decoder = _wire.Decoder(key)
        for read in self._readers:
            os.set_blocking(read.fileno(), False)
        _widen(output.fileno())
        try:
            yield context.Process(
                target=_worker.serve, args=(self._job, key, *writers, self._phase)
            )
        finally:
            for write in writers:
                write.close()

    @property
    def phase(self) -> str:
        """The phase it is in, one of ``gradlint.ops.phase.PHASES``."""
        return self._phases_now()[0] if self.ending is None else self.ending.phase

    def waitables(self) -> list[Any]:
        """What to wait on for news."""
        events = [self._events] if self._events is not None else []
        return [*events, *self._readers, self._process.sentinel]

    def pump(self) -> list[Event]:
        """Take what has come, without blocking; sets :attr:`ending` once the process is gone."""
        if self.ending is None:
            if wait([self._process.sentinel], 0):
                self._bury()
            else:
                self._read()
        events, self._pending = self._pending, []
        if events:
            self.grant()
        return events

    def grant(self) -> None:
        """Give it its whole time from now on."""
        self._granted = time.monotonic()
        self._queued = self._queued_s()
        self.deadline = self._granted + self._limit()

    def overdue(self) -> bool:
        """Whether nothing came for the time it was given.

        The time that it waited for a processor does not count, so that a busy machine blames no
        operator, and none does in which an extension is built; the time that it slept does.
        """
        if self.ending is not None or time.monotonic() <= self.deadline:
            return False
        limit = self._limit()
        waited = min(self._queued_s() - self._queued, _server.MOST_WAITING * limit)
        self.deadline = max(self.deadline, self._granted + limit + waited)
        now = time.monotonic()
        if now <= self.deadline:
            return False
        if now < self._granted + limit + _builds.MOST_SECONDS and self._building():
            self.deadline = now + limit
            return False
        return True

    def _building(self) -> list[Path]:
        """The folders in which it is building extensions; none for a confined one, whose word for
        it is not to be taken."""
        confined = self._job.confinement is not None
        return [] if confined else _builds.below(self._process.pid)

    def _limit(self) -> float:
        # A worker that is done has but to exit; its keeper may have been stopped.
        done = self._finished and self._kept
        return min(self.timeout, _GRAVE_SECONDS) if done else self.timeout

    def _queued_s(self) -> float:
        """Seconds that its main thread was ready to run, and waited for a processor."""
        return clock.queued_seconds(self._sender)

    def kill(self, why: str) -> None:
        """End it and everything it started; for a time-out, have it print its stack first."""
        if self.ending is not None:
            return
        if why == "timeout" and self.killed is None:
            # The signal that asks for the stack may wake what slept, so look before.
            self._phases = self._phases_now()
            if self._phases[0] in _worker.USER_PHASES:
                (entered,) = _worker.TIME.unpack_from(self._phase.buffer, _worker.ENTERED)
                self._called_s = time.monotonic() - entered
            self._ask_for_stack()
        self.killed = self.killed or why
        building = self._building()
        self._kill_group()
        if not wait([self._process.sentinel], _GRAVE_SECONDS):
            self._kill_all()  # the keeper does not do its work
        if wait([self._process.sentinel], _GRAVE_SECONDS):
            self._bury()
        else:
            self._end(None)
        _builds.release(building)

    def refuse(self) -> None:
        """Take nothing more from it, and end it: what it said can't be true."""
        self._refused = True
        self._pending.clear()
        if self.ending is None:  # its last words may be read when it is gone already
            self._kill_group()

    # -- inner workings -------------------------------------------------------------------------

    def _read(self, *, until_empty: bool = False) -> None:
        for _ in range(_DRAIN_CHUNKS if until_empty else 1):
            if self._events is None:
                break
            chunk, sender, ended = self._events.read()
            if chunk:
                self._on_events(chunk, sender)
            if ended:
                self._events.close()
                self._events = None
            if not chunk:
                break
        for reader, take in list(self._readers.items()):
            for _ in range(_DRAIN_CHUNKS if until_empty else 1):
                chunk, ended = _wire.read_available(reader.fileno())
                if chunk:
                    take(chunk)
                if ended:
                    del self._readers[reader]
                    reader.close()
                if ended or not chunk:
                    break

    def _on_events(self, chunk: bytes, sender: int | None) -> None:
        if self._refused:
            return
        if self._sender is None:
            self._sender = sender  # no code of the user's has run yet
        try:
            if sender not in (None, self._sender):
                raise _wire.FrameError(
                    f"process {sender}, which is not the worker, wrote to its channel"
                )
            for event in self._decoder.feed(chunk):
                self._take(event)
        except _wire.FrameError as error:
            self._forged(str(error))

    def _take(self, event: Event) -> None:
        if isinstance(event, Pid):
            if not self._watched or self._sender not in (None, event.pid):
                raise _wire.FrameError(f"a worker claimed to be process {event.pid}")
            self._group = event.pid
        self._finished = self._finished or isinstance(event, Done)
        self._pending.append(event)

    def _forged(self, text: str) -> None:
        self._refused = True
        self._pending.append(Forgery(text))
        self._kill_group()

    def _on_output(self, chunk: bytes) -> None:
        self._tail += chunk[-TAIL_BYTES:]
        del self._tail[:-TAIL_BYTES]

    def _on_dumps(self, chunk: bytes) -> None:
        self._dumped += chunk
        del self._dumped[TAIL_BYTES:]

    def _ask_for_stack(self) -> None:
        if _confine.DUMP_SIGNAL is None or self._sender is None or self._watched:
            return  # the tool that watches would get the signal, and end
        dumps = next((r for r, take in self._readers.items() if take == self._on_dumps), None)
        if dumps is None:
            return
        with suppress(OSError):
            os.kill(self._sender, _confine.DUMP_SIGNAL)
            patience = _DUMP_SECONDS
            while wait([dumps], patience):
                chunk, ended = _wire.read_available(dumps.fileno())
                self._on_dumps(chunk)
                if ended:
                    break
                patience = _DUMP_PAUSE

    def _kill_group(self) -> None:
        if not self._kept:
            self._kill_all()
        elif self.ending is None and not wait([self._process.sentinel], 0):
            with suppress(OSError):
                self._process.terminate()  # the keeper ends the worker, and all below it
                _continue(self._process.pid)

    def _kill_all(self) -> None:
        pid = self._process.pid
        if pid is None:
            return
        group = self._group or self._sender or (None if self._kept else pid)
        if hasattr(os, "killpg") and group is not None:
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        with suppress(OSError):
            if self.ending is None and not wait([self._process.sentinel], 0):
                self._process.kill()

    def _bury(self) -> None:
        self._process.join(_GRAVE_SECONDS)
        left = self._phase.buffer[_keeper.LEFT] if self._kept else 0
        if left == 0:
            self._kill_all()  # what it left behind, if there was no keeper to end it
        self._read(until_empty=True)
        code = self._process.exitcode
        # multiprocessing says 255 where the server can't.
        lost = code == 255 and self._server is not None and _server.has_ended(self._server)
        orphaned = self._kept and left == 0 and not lost
        if orphaned:
            _server.end_orphans()
        if not self._refused and not lost:
            # A worker that was killed may have been writing; one that exits wrote whole frames.
            if self._decoder.incomplete and (self._finished or code == 0):
                self._forged("the worker ended in the middle of a frame")
            elif self._finished and self._phases_now()[0] in _worker.USER_PHASES:
                self._forged("the worker reported its end while code of the op was running")
        self._end(code, lost=lost, orphaned=orphaned, left=max(left - 1, 0))

    def _phases_now(self) -> tuple[str, str]:
        now, user = (PHASES[min(index, len(PHASES) - 1)] for index in self._phase.buffer[:2])
        return now, user

    def _tried(self) -> str:
        """What the worker wrote there, which may be anything."""
        (size,) = _worker.SIZE.unpack_from(self._phase.buffer, _worker.TRIED)
        start = _worker.TRIED + _worker.SIZE.size
        return bytes(self._phase.buffer[start : start + size]).decode("utf-8", "ignore")

    def _end(
        self,
        exit_code: int | None,
        *,
        lost: bool = False,
        orphaned: bool = False,
        left: int = 0,
    ) -> None:
        self._close()
        phase, user_phase = self._phases or self._phases_now()
        self.ending = Ending(
            exit_code,
            self.killed,
            phase,
            user_phase,
            _stack.parse(self._dumped.decode("utf-8", "replace")),
            self._tail.decode("utf-8", "replace"),
            self._finished,
            lost,
            orphaned,
            left,
            self._called_s,
            self._tried(),
        )
        if exit_code is not None:
            self._process.close()

    def _close(self) -> None:
        """Read nothing more."""
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        if self._events is not None:
            self._events.close()
            self._events = None


def _continue(pid: int | None) -> None:
    """Let a process that was stopped go on, so that it can end."""
    if pid is not None:
        os.kill(pid, signal.SIGCONT)


def _widen(fd: int) -> None:
    if sys.platform != "linux":
        return

    with suppress(OSError):
        fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_BYTES)
