"""Where workers come from: multiprocessing's fork server with torch and the rules preloaded.

The server is one process that imports torch once; a worker is a fork of it and starts in
milliseconds. The process that reports never imports torch. Where there is no fork server
(Windows) workers are spawned.

The server is supervised. One that has ended is replaced by the next :func:`launch`; one that is
stopped, or does not answer in time, is killed, so that it can be replaced. Its workers end with it,
and whoever waits for them finds out by :func:`has_ended`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing.process import BaseProcess, current_process
from typing import Any, Literal

from gradlint.base import clock
from gradlint.base.scratch import scratch_folder
from gradlint.running import _confine, _keeper
from gradlint.running.environment import public
from gradlint.running.interruption import interruptible

PRELOAD = "gradlint.running._preload"

#: Name of the environment variable that says what a server loads, a :data:`Load`.
LOADS = "GRADLINT_PRELOAD"

#: torch alone; gradlint's rules too; what ``torch.compile`` needs too, for the rules that trace.
Load = Literal["torch", "rules", "tracing"]

#: multiprocessing re-runs the main program in a worker unless its name ends in ``.__main__``
#: (``multiprocessing.spawn._fixup_main_from_name``). A user's script must not run again.
_MAIN = ModuleSpec("gradlint.__main__", None)

#: Name of the environment variable that says which files a server reads, as a list in JSON.
SOURCES = "GRADLINT_PRELOAD_SOURCES"

#: Names of the environment variables that say which process a server ends with, and which folder
#: it then removes.
PARENT = "GRADLINT_PRELOAD_PARENT"
FOLDER = "GRADLINT_PRELOAD_FOLDER"

#: From how many operators, or files of Python in a folder, there are many: a server that is to
#: serve many takes its time to spare that of its workers. Heuristic: by all rules it took 0.9 s
#: more and saved each operator 0.2 s (AMD EPYC).
MANY_OPERATORS = 8

#: Name of the file in that folder which says that many operators are going to be checked. It is a
#: file since this is often known only once the server is loading.
MANY = "many"

#: Name of the file there which says that a single operator is going to be checked, once: a second
#: worker loads the compiler then, while the first one runs the rules that do without it.
SINGLE = "single"

#: Times a time-out that waiting for a processor may add to it.
MOST_WAITING = 10.0

#: How often a worker is started anew because the server ended.
_MOST_STARTS = 3

#: Seconds in which a server must have answered for the first time. Heuristic: importing torch takes
#: a few seconds, and much longer on a busy machine with a cold disk.
_LOADING_SECONDS = 120.0

#: Seconds between two looks at the server, and seconds that it may be seen stopped: a whole job
#: that was suspended goes on one process after another.
LOOK_SECONDS = 0.5
_STOPPED_SECONDS = 2.0

#: What starting a worker raises when the server ends meanwhile.
_ENDED = (EOFError, ConnectionError, FileNotFoundError)

_lock = threading.RLock()

#: What a server loads and reads when it is started next.
_load: Load = "rules"
_sources: tuple[str, ...] = ()

#: Seconds in which the kernel tells of the end of a process that has closed its pipes. Heuristic:
#: on a busy machine that has to give back gigabytes first.
_NOTICE_SECONDS = 1.0

#: Seconds after which a killed process that does not vanish is left to the kernel.
_STRAYS_SECONDS = 3.0
_PAUSE_SECONDS = 0.002

#: Whether orphans become children of this process.
_adopting = False

#: Whether this process makes one run and ends.
_once = False

#: Servers that have answered, by process id.
_answered: set[int] = set()

#: When a server was first seen stopped: its process id and the time.
_stopped: tuple[int, float] | None = None

#: Whether servers are given only what untrusted code may see of the environment. Once they are,
#: they stay so: workers get the caller's own environment with their job.
_private = False


class ServerLost(RuntimeError):
    """The process from which workers come ends whenever it is started."""


def context(interpreter: str | None = None) -> Any:
    """The multiprocessing context of workers; one with an ``interpreter`` of its own (see ``Job``)
    is spawned."""
    methods = multiprocessing.get_all_start_methods()
    forked = interpreter is None and "forkserver" in methods
    return multiprocessing.get_context("forkserver" if forked else "spawn")


def start(
    load: Load | None = None,
    sources: Sequence[str] = (),
    *,
    private: bool = False,
    many: bool = False,
    single: bool = False,
) -> None:
    """Start the fork server in the background, so that torch loads while the caller goes on.

    Does nothing where the server runs already or does not exist on this platform.

    Args:
        load: what the server imports, if that is not known yet; a worker imports by itself whatever
            else it needs. Default: as the last time, or gradlint's rules.
        sources: paths of files that the server reads and parses, so that its workers need not. One
            that runs, and has not read them, is replaced.
        private: whether workers must not see the environment of this process. A server that was
            given it is ended, and another started.
        many: whether many operators are going to be checked (:data:`MANY_OPERATORS`): a server that
            does not serve yet then does for all workers what takes long only the first time.
        single: whether a single operator is going to be checked by this process, ever: a server
            that does not serve yet then leaves to a worker what the compiler needs.
    """
    global _load, _sources
    if context().get_start_method() != "forkserver":
        return
    _load = load or _load
    for name in [MANY] * many + [SINGLE] * single:
        with suppress(OSError), open(os.path.join(scratch_folder(), name), "w"):
            pass
    if not set(sources) <= set(_sources):
        _end()
        _sources = tuple(sources)

    # Starting the tracker unblocks SIGINT (Python 3.11): before the mask is set, not under it.
    resource_tracker.ensure_running()
    with _lock:
        _make_private(private)
        with (
            _main_left_alone(),
            _socket_in_scratch(),
            _environment_of_server(),
            _without_interrupts(),
        ):
            context().set_forkserver_preload([PRELOAD])
            forkserver.ensure_running()


def launch(
    prepared: Callable[[], AbstractContextManager[BaseProcess]],
    interpreter: str | None = None,
    *,
    timeout: float = float("inf"),
    private: bool = False,
) -> tuple[BaseProcess, int | None]:
    """Start a process of ``context(interpreter)``, without running the main program again.

    Args:
        prepared: makes a process that is not started yet, for each attempt another one: a server
            that ends while it starts a process may have started it, and nobody knows.
        interpreter: see ``Job``.
        timeout: seconds in which a server that answered before must have started it.
        private: see :func:`start`.

    Returns:
        The process, and the process id of the server; None where there is none.

    Raises:
        ServerLost: the server ended every time.
    """
    global _sources
    served = interpreter is None and context().get_start_method() == "forkserver"
    for _ in range(_MOST_STARTS if served else 1):
        if served:
            start(private=private)
        try:
            with _lock, _main_left_alone(), _spawned_by(interpreter), _answering(served, timeout):
                with prepared() as process, interruptible():
                    process.start()
                server = _pid() if served else None
        except _ENDED:
            if not served:
                raise
            _sources = ()  # in case that it was a file that ended it
            _end()  # where it lives, its socket is gone, and nobody will reach it again
            continue
        except BaseException:
            _end()  # it may have started what nobody knows of
            raise
        if server is not None:
            _answered.add(server)
        return process, server
    raise ServerLost(
        "the process from which gradlint's workers come ended "
        f"{_MOST_STARTS} times while a worker was started"
    )


def has_ended(pid: int) -> bool:
    """Whether the server ``pid``, which seems to have closed its pipes, has ended."""
    # The kernel closes the files of a process a moment before it tells of its end.
    end = time.monotonic() + _NOTICE_SECONDS
    while _state(pid) != "ended":
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def end_orphans() -> None:
    """Kill the children of the server that are no keepers: what an operator whose keeper was killed
    had started (Linux)."""
    with _lock:
        pid = _pid()
        if pid is None:
            return
        known = {process.pid for process in multiprocessing.active_children()}
        for orphan in _keeper.children(pid):
            if orphan not in known:
                _kill(orphan)


def look() -> None:
    """Kill a server that has been stopped for long, so that its workers end and are done anew."""
    global _stopped
    pid = _pid()
    if pid is None or _state(pid) != "stopped":
        _stopped = None
        return
    now = time.monotonic()
    if _stopped is None or _stopped[0] != pid:
        _stopped = (pid, now)
    elif now - _stopped[1] >= _STOPPED_SECONDS:
        _kill(pid)


def stop() -> None:
    """End the fork server at once; a later :func:`launch` starts another."""
    if context().get_start_method() == "forkserver":
        _end()


def _end() -> None:
    # The server ends by itself soon after this process; killing it only makes that immediate.
    pid = _pid()
    if pid is not None:
        _kill(pid)
        with suppress(Exception):
            _forkserver()._stop()
    _end_strays()


def adopt() -> None:
    """Make this process, which is gradlint's own, answer for what outlives the server: operators
    that end their keeper and the server leave nothing behind either (Linux)."""
    global _adopting
    _adopting = True
    _confine.adopt_orphans()


def serve_once() -> None:
    """Say that this process makes one run and ends, so that what the server loads pays only by what
    that run saves."""
    global _once
    _once = True


def serves_once() -> bool:
    """Whether :func:`serve_once` was called, and there is a server."""
    return _once and context().get_start_method() == "forkserver"


def _end_strays() -> None:
    """Kill the children that this process has not started, and those that it so inherits."""
    if not _adopting:
        return
    end = time.monotonic() + _STRAYS_SECONDS
    while time.monotonic() < end:
        tracker = getattr(resource_tracker, "_resource_tracker", None)
        own = {_pid(), getattr(tracker, "_pid", None)}
        own |= {process.pid for process in multiprocessing.active_children()}
        strays = [pid for pid in _keeper.children(os.getpid()) if pid not in own]
        if not strays:
            break
        for pid in strays:
            _kill(pid)
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_PAUSE_SECONDS)


def _forkserver() -> Any:
    return getattr(forkserver, "_forkserver", None)


def _pid() -> int | None:
    return getattr(_forkserver(), "_forkserver_pid", None)


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _state(pid: int) -> Literal["running", "stopped", "ended"]:
    """Of a child process, which is left for multiprocessing to bury."""
    if not hasattr(os, "waitid"):
        return "running"  # macOS before Python 3.13
    options = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    try:
        found = os.waitid(os.P_PID, pid, options)
    except OSError:
        return "ended"  # and was buried
    if found is None:
        return "running"
    return "stopped" if found.si_code == os.CLD_STOPPED else "ended"


@contextmanager
def _answering(served: bool, timeout: float) -> Iterator[None]:
    """In the body, which waits for the server, kill it if it does not answer."""
    pid = _pid()
    if not served or pid is None:
        yield
        return
    limit = min(timeout, _LOADING_SECONDS) if pid in _answered else _LOADING_SECONDS
    end = time.monotonic() + limit
    queued = clock.queued_seconds(pid)
    answered = threading.Event()

    def watch() -> None:
        while not answered.wait(LOOK_SECONDS):
            look()
            # The time that it waited for a processor does not count.
            if time.monotonic() > end + min(
                clock.queued_seconds(pid) - queued, MOST_WAITING * limit
            ):
                _kill(_pid() or pid)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        answered.set()
        watcher.join()


@contextmanager
def _main_left_alone() -> Iterator[None]:
    main = sys.modules["__main__"]
    before = getattr(main, "__spec__", None)
    main.__spec__ = _MAIN
    try:
        yield
    finally:
        main.__spec__ = before


@contextmanager
def _spawned_by(interpreter: str | None) -> Iterator[None]:
    before = spawn.get_executable()
    spawn.set_executable(interpreter or before)
    try:
        yield
    finally:
        spawn.set_executable(before)


def _make_private(wanted: bool) -> None:
    """End a server that was given the whole environment, if that is not wanted."""
    global _private
    if wanted and not _private:
        _end()
        _private = True


@contextmanager
def _environment_of_server() -> Iterator[None]:
    # Before Python 3.13 the server ignores the ``sys.path`` it is sent, and fails to preload
    # silently; the environment is the one way that works in all of them. Workers get the
    # caller's own environment again.
    paths = [path for path in sys.path if path and os.path.isabs(path)]
    changed = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", LOADS: _load}
    changed[SOURCES] = json.dumps(_sources)
    if threading.current_thread() is threading.main_thread():
        # The kernel tells of the end of a thread; only the end of this one is that of the process.
        changed[PARENT] = str(os.getpid())
    changed[FOLDER] = scratch_folder()
    hidden = os.environ.keys() - public(os.environ) if _private else ()
    before = {name: os.environ.get(name) for name in (*hidden, *changed)}
    for name in hidden:
        del os.environ[name]
    os.environ.update(changed)
    try:
        with _in_root_folder():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _socket_in_scratch() -> Iterator[None]:
    """In the body, multiprocessing makes sockets in gradlint's folder, which is removed whatever
    ends this process, and not in one of its own, which stays where the process is killed."""
    told: dict[str, Any] = getattr(current_process(), "_config", {})
    before = told.get("tempdir")
    told["tempdir"] = scratch_folder()
    try:
        yield
    finally:
        told["tempdir"] = before


@contextmanager
def _in_root_folder() -> Iterator[None]:
    # Before Python 3.11, which knows PYTHONSAFEPATH, the server imports from where it was started:
    # a file there may shadow the standard library. Workers go back to the caller's folder.
    if sys.version_info >= (3, 11):
        yield
        return
    before = os.getcwd()
    os.chdir(os.sep)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    # The server inherits the mask: Ctrl-C while it imports torch must not end in a traceback.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
