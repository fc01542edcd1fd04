"""Runs: targets in isolated workers, time-outs, crashes that become findings.

Names are loaded when they are first used: the command line starts the fork server before it
loads anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlint.running._call import WorkerFailed, call_in_worker, call_on_target
    from gradlint.running._here import run_here
    from gradlint.running._overrides import overrides
    from gradlint.running._run import Run, execute, run
    from gradlint.running._server import start, stop
    from gradlint.running._starter import starter

__all__ = [
    "Run",
    "WorkerFailed",
    "call_in_worker",
    "call_on_target",
    "execute",
    "overrides",
    "run",
    "run_here",
    "start",
    "starter",
    "stop",
]

_HOMES = {
    "Run": "_run",
    "WorkerFailed": "_call",
    "call_in_worker": "_call",
    "call_on_target": "_call",
    "execute": "_run",
    "overrides": "_overrides",
    "run": "_run",
    "run_here": "_here",
    "start": "_server",
    "starter": "_starter",
    "stop": "_server",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
