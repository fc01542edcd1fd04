"""A Dask cluster over loopback, whose scheduler and workers can be killed and started anew."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from gradlint.running.items import Result, encoded

ROOT = str(Path(__file__).parents[2])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Cluster:
    """One scheduler, and workers with one thread each.

    Args:
        folder: where the workers run; logs: where they write what they print.
    """

    def __init__(self, folder: Path, logs: Path, **environment: str) -> None:
        self.folder = folder
        self.logs = logs
        self.port = free_port()
        self.environment = environment
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.start_scheduler()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._start("scheduler", words)

    def start_worker(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """A worker without Dask's nanny, so that nobody starts it anew."""
        fixed = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        fixed += ["--host", "127.0.0.1", "--memory-limit", "0"]
        worker = self._start("worker", [*fixed, *words], **environment)
        self.workers.append(worker)
        return worker

    def kill_worker(self, number: int) -> None:
        self._kill(self.workers[number])

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self._kill(self.scheduler)

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process is not None:
                self._kill(process)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _start(self, kind: str, words: list[str], **environment: str) -> subprocess.Popen[bytes]:
        self.logs.mkdir(exist_ok=True)
        with open(self.logs / f"{kind}.txt", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": ROOT, **self.environment, **environment},
            )


_lock = threading.Lock()
_busy = 0


def stand_in(*_: Any) -> bytes:
    """Does nothing for a moment in the place of a worker's work; tells, as the reason why nothing
    is kept, how many were at it when it began or ended."""
    global _busy
    with _lock:
        _busy += 1
        most = _busy
    time.sleep(0.5)
    with _lock:
        most = max(most, _busy)
        _busy -= 1
    return encoded(Result("host", why=str(most)))
