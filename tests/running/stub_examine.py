"""Stands in for the rules: three "rules" that call forward, or misbehave as their op says."""

from __future__ import annotations

import os
import signal
from typing import Any

from gradlint.model.events import Begin, CheckDone, Emit, Found, Samples
from gradlint.model.report import Check, Finding
from gradlint.ops.phase import phase

CODES = ("GL101", "GL301", "GL401")


def examine(op: Any, samples: Any, settings: Any, emit: Emit, done: frozenset[Any]) -> None:
    """The contract of ``gradlint.checking.examine``; the behaviour is in ``op.function.plan``:
    code → "pass", "finding", "crash", "hang", "bug", "memory", "refused"."""
    plan = getattr(op.function, "plan", {})
    emit(Samples([sample.report(op.signature) for sample in samples]))
    for sample in samples:
        for code in CODES:
            if (code, sample.label) in done:
                continue
            emit(Begin(code, sample.label))
            with phase("rule"):
                _act(op, sample, plan.get(code, "pass"))
            emit(CheckDone(Check(code, "pass", sample.label)))
            if plan.get(code) == "finding":
                emit(Found(Finding(code, "n", "error", "m", sample=sample.label)))


def _act(op: Any, sample: Any, action: str) -> None:
    if action == "crash":
        with phase("backward"):
            os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "hang":
        while True:
            pass
    elif action == "bug":
        raise ZeroDivisionError("a bug of gradlint's own")
    elif action == "memory":
        raise MemoryError
    elif action == "refused":
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 4194304 bytes. Error code 12 (Cannot allocate memory)"
        )
    else:
        with phase("forward"):
            op.call(*sample.args)
