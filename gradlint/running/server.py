"""Where workers come from: multiprocessing's fork server with torch and the rules preloaded.

The server is one process that imports torch once; a worker is a fork of it and starts in
milliseconds. The process that reports never imports torch. Where there is no fork server
(Windows) workers are spawned.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from gradlint.running.environment import public

PRELOAD = "gradlint.running._preload"

#: Name of the environment variable that says what a server loads, a :data:`Load`.
LOADS = "GRADLINT_PRELOAD"

#: torch alone; gradlint's rules too; what ``torch.compile`` needs too, for the rules that trace.
Load = Literal["torch", "rules", "tracing"]

#: multiprocessing re-runs the main program in a worker unless its name ends in ``.__main__``
#: (``multiprocessing.spawn._fixup_main_from_name``). A user's script must not run again.
_MAIN = ModuleSpec("gradlint.__main__", None)

_lock = threading.RLock()

#: Whether servers are given only what untrusted code may see of the environment. Once they are,
#: they stay so: workers get the caller's own environment with their job.
_private = False


def context(interpreter: str | None = None) -> Any:
    """The multiprocessing context of workers; one with an ``interpreter`` of its own (see ``Job``)
    is spawned."""
    methods = multiprocessing.get_all_start_methods()
    forked = interpreter is None and "forkserver" in methods
    return multiprocessing.get_context("forkserver" if forked else "spawn")


def start(load: Load = "rules", *, private: bool = False) -> None:
    """Start the fork server in the background, so that torch loads while the caller goes on.

    Does nothing where the server runs already or does not exist on this platform.

    Args:
        load: what the server imports; a worker imports by itself whatever else it needs.
        private: whether workers must not see the environment of this process. A server that was
            given it is ended, and another started.
    """
    if context().get_start_method() != "forkserver":
        return

    # Starting the tracker unblocks SIGINT (Python 3.11): before the mask is set, not under it.
    resource_tracker.ensure_running()
    with _lock:
        _make_private(private)
        with _main_left_alone(), _environment_of_server(load), _without_interrupts():
            context().set_forkserver_preload([PRELOAD])
            forkserver.ensure_running()


def launch(process: BaseProcess, interpreter: str | None = None, *, private: bool = False) -> None:
    """Start ``process``, of ``context(interpreter)``, without running the main program again; see
    :func:`start` for ``private``."""
    if interpreter is None:
        start(private=private)
    with _lock, _main_left_alone(), _spawned_by(interpreter):
        process.start()


def stop() -> None:
    """End the fork server at once; a later :func:`launch` starts another."""
    if context().get_start_method() != "forkserver":
        return

    # The server ends by itself soon after this process; killing it only makes that immediate.
    server: Any = getattr(forkserver, "_forkserver", None)
    pid = getattr(server, "_forkserver_pid", None)
    if pid:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with suppress(Exception):
            server._stop()


def block_interrupts() -> None:
    """Let this process, which was interrupted, end with the exit code that it chose.

    A second Ctrl-C would print a traceback while Python shuts down, and Python ends itself by
    SIGINT, whatever code was asked for, where the first one came while a string was executed
    (``dataclasses`` does so on import; ``exit_sigint`` of CPython's ``Modules/main.c``).
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


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
        stop()
        _private = True


@contextmanager
def _environment_of_server(load: Load) -> Iterator[None]:
    # Before Python 3.13 the server ignores the ``sys.path`` it is sent, and fails to preload
    # silently; the environment is the one way that works in all of them. Workers get the
    # caller's own environment again.
    paths = [path for path in sys.path if path and os.path.isabs(path)]
    changed = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", LOADS: load}
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
