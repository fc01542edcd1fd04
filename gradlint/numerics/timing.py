"""How long a call takes, on a machine that does other things as well."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

#: Timings of a call that seems slow, at most (heuristic: a busy machine stalls a call now and then,
#: hardly three in a row).
TIMES = 3


def least_seconds(
    call: Callable[[], object],
    enough: float,
    *,
    known: float = math.inf,
    most: float = math.inf,
) -> float:
    """Seconds that ``call`` takes: the least of a few timings, as nothing makes a call faster than
    it is.

    Args:
        call: what is timed.
        enough: seconds that are quick enough: where one call took no more, no further is made.
        known: seconds that an earlier call took.
        most: seconds of a call that is not made again: to be certain would take too long.
    """
    least = known
    for _ in range(TIMES):
        if least <= enough or most < least < math.inf:
            break
        started = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - started)
    return least
