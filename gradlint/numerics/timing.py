"""Measure how long a call takes on a busy machine."""

from __future__ import annotations

import math
from collections.abc import Callable

from gradlint.base.clock import had_seconds

#: Times that a slow call is timed at most (heuristic: a busy machine stalls a call now and then,
#: but hardly three in a row).
TIMES = 3


def least_seconds(
    call: Callable[[], object],
    enough: float,
    *,
    known: float = math.inf,
    most: float = math.inf,
) -> float:
    """Seconds that ``call`` takes: the least of a few timings, since interruptions only add time.

    Args:
        call: the function to time.
        enough: a timing of at most this many seconds is accepted at once.
        known: seconds that an earlier call took.
        most: a call that took longer than this many seconds is not repeated.
    """
    least = known
    for _ in range(TIMES):
        if least <= enough or most < least < math.inf:
            break
        started = had_seconds()
        call()
        least = min(least, had_seconds() - started)
    return least
