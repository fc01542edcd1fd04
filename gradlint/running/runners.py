"""Items done by this process's own runners: what every executor calls, here or on a cluster.

A runner is a process of its own (``gradlint.running.runner``), so whoever asks, a program that
embeds gradlint or a worker of Dask, runs no code of the operator's, imports no torch for it, and
outlives whatever the operator does.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress

from gradlint.running import _pieces

#: Seconds that a runner is given to end.
_PATIENCE = 10.0

#: Seconds between two looks at whether a result is still wanted.
_LOOK_S = 1.0


class RunnerLost(RuntimeError):
    """A runner ended while it did an item."""


class Runner:
    """One process that does items.

    Args:
        folder: its working directory.
        jobs: items at a time.
    """

    def __init__(self, folder: str, jobs: int) -> None:
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        before = os.environ.get("PYTHONPATH")
        # As a program that was started in that folder, with this gradlint.
        path = os.pathsep.join(filter(None, [root if _is_checkout(root) else "", before]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gradlint.running.runner", str(jobs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **({"PYTHONPATH": path} if path else {})},
            start_new_session=True,  # Ctrl-C is for whoever waits for it
        )
        self._waiting: dict[int, Future[bytes]] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._ended = False
        threading.Thread(target=self._read, name="gradlint-runner", daemon=True).start()

    def cancel(self, future: Future[bytes]) -> None:
        """Nobody waits for ``future`` any more: what it stands for ends."""
        with self._lock:
            for number, known in self._waiting.items():
                if known is future and not self._ended and self._process.stdin is not None:
                    with suppress(OSError):
                        _pieces.write(self._process.stdin.fileno(), number, b"")

    @property
    def alive(self) -> bool:
        """Whether it takes items."""
        return not self._ended

    def submit(self, data: bytes) -> Future[bytes]:
        """What comes of an item, encoded."""
        future: Future[bytes] = Future()
        assert self._process.stdin is not None
        with self._lock:
            if self._ended:
                raise RunnerLost("the process that does items has ended")
            self._number += 1
            self._waiting[self._number] = future
            with suppress(OSError):  # said by whoever reads
                _pieces.write(self._process.stdin.fileno(), self._number, data)
        return future

    def close(self) -> None:
        """End it, and whatever it does."""
        with self._lock:
            self._ended = True
            if self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        pieces = _pieces.Pieces()
        with suppress(OSError, ValueError):
            while data := os.read(self._process.stdout.fileno(), _pieces.CHUNK):
                for number, body in pieces.feed(data):
                    future = self._waiting.pop(number, None)
                    if future is not None:
                        future.set_result(body)
        with self._lock:
            self._ended = True
            lost, self._waiting = self._waiting, {}
        code = self._process.wait()
        for future in lost.values():
            future.set_exception(RunnerLost(f"the process that did it ended with status {code}"))


def _is_checkout(root: str) -> bool:
    """Whether this gradlint was not installed, and must be told to the process."""
    return root in (entry and os.path.abspath(entry) for entry in sys.path)


_runners: dict[tuple[str, int], Runner] = {}
_lock = threading.Lock()
_alone = threading.Lock()


def check_item(
    data: bytes, folder: str, jobs: int = 1, wanted: Callable[[], bool] | None = None
) -> bytes:
    """Do an item, in the runner of this process for ``folder``.

    Args:
        data: an item, encoded.
        folder: the working directory.
        jobs: how many items are done at a time here.
        wanted: whether anybody still waits for the result, asked every second; None for always.

    Returns:
        The result, encoded; of an item that nobody waits for any more, what was known.

    Raises:
        RunnerLost: the runner ended, twice.
    """
    try:
        return _result(_runner(folder, jobs), data, wanted)
    except RunnerLost:
        # Another item may have ended it; the second time it is known which.
        with _alone:
            runner = Runner(folder, 1)
            try:
                return _result(runner, data, wanted)
            finally:
                runner.close()


def _result(runner: Runner, data: bytes, wanted: Callable[[], bool] | None) -> bytes:
    future = runner.submit(data)
    while wanted is not None:
        done, _ = wait([future], _LOOK_S)
        if done:
            break
        if not wanted():
            runner.cancel(future)
            break
    return future.result()


def _runner(folder: str, jobs: int) -> Runner:
    with _lock:
        runner = _runners.get((folder, jobs))
        if runner is None or not runner.alive:
            runner = _runners[folder, jobs] = Runner(folder, jobs)
        return runner


def close_runners() -> None:
    """End all runners of this process."""
    with _lock:
        runners = list(_runners.values())
        _runners.clear()
    for runner in runners:
        runner.close()


atexit.register(close_runners)
