"""Operators that end the process, or do not end: called in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from gradlint.reproduction.torch_alone.case import Case, Defect, pulled

#: Says to the process that calls the operator that it is the one.
CALLED = "CALLED_BY_SCRIPT"

#: With what that process exits once forward and backward have come to an end.
CAME_BACK = 42


def ends_badly(case: Case, seconds: float) -> Defect | None:
    """How a process ends that calls forward and backward, if neither returns nor raises, or is not
    done in `seconds`."""
    if CALLED in os.environ:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)  # what it sends ends the process
        try:
            leaves, outputs = case.run()
            pulled(outputs, leaves, case.cotangents(outputs))
        except Exception:
            pass
        except BaseException as error:  # which ends Python, tidied up or not
            code = getattr(error, "code", 1)
            os._exit(code if isinstance(code, int) else int(code is not None))
        os._exit(CAME_BACK)
    flags = ["-I"] if sys.flags.isolated else []
    limit = None if hasattr(signal, "setitimer") else seconds
    try:
        code = subprocess.run(
            [sys.executable, *flags, os.path.abspath(__file__)],
            env={**os.environ, CALLED: "1"},
            stdin=subprocess.DEVNULL,
            timeout=limit,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        code = -getattr(signal, "SIGALRM", 14)
    if code == CAME_BACK:
        return None
    source = "it was called in a process of its own"
    if code == -getattr(signal, "SIGALRM", 14):
        return Defect("the call does not end", f"an end within {seconds:g} s", "none", source)
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    names = [item.name for item in signal.Signals if item.value == -code]
    return Defect("the call ends the process", "a result", " ".join([how, *names]), source)
