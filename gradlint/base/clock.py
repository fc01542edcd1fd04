"""Time that a process had, on a machine that others use, too."""

from __future__ import annotations

import os
import time

#: Bound before an operator can replace them.
_open, _read, _close = os.open, os.read, os.close

#: More than the line that the system tells has.
_LONGEST = 200

#: How often the two clocks are read until nothing came between them: on a machine with many times
#: as many busy processes as processors, a process is seldom set aside twice within microseconds.
_READS = 5


def queued_seconds(pid: int | str | None) -> float:
    """Seconds that the main thread of process ``pid`` was ready to run and waited for a processor;
    0 where the system does not tell.

    The second number in /proc/PID/schedstat, in nanoseconds (Documentation/scheduler/sched-stats in
    the sources of Linux).
    """
    try:
        # Read as bytes: a codec would be imported on first use, which an operator may prevent.
        told = _open(f"/proc/{pid}/schedstat", os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(_read(told, _LONGEST).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
    finally:
        _close(told)


def had_seconds() -> float:
    """A clock for budgets of time: seconds, less those that this process waited for a processor.

    What it sleeps counts, so that an operator that waits for something does not work for ever; what
    others take of a busy machine does not, so that the same is measured there as on a quiet one.
    Both clocks are read at one moment: a process that is set aside between the two readings would
    have that wait taken off a measurement that it is no part of, which may be longer than the
    measurement.
    """
    for _ in range(_READS):
        queued = queued_seconds("self")
        now = time.monotonic()
        if queued_seconds("self") == queued:
            break
    return now - queued
