"""Runs: targets in isolated workers, time-outs, crashes that become findings."""

from gradlint.running._call import WorkerFailed, call_in_worker, call_on_target
from gradlint.running._run import Run, execute, run
from gradlint.running._server import start, stop
from gradlint.running._starter import starter

__all__ = [
    "Run",
    "WorkerFailed",
    "call_in_worker",
    "call_on_target",
    "execute",
    "run",
    "run_here",
    "start",
    "starter",
    "stop",
]


def __getattr__(name: str) -> object:
    if name == "run_here":
        from gradlint.running._here import run_here

        return run_here
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
