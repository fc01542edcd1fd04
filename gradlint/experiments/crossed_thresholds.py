"""Samples in which what forward computes is on the other side of a threshold that it compares with.

A norm, a variance or an angle is above its epsilon at all usual inputs, and the branch below it
never runs. It is reached by making the inputs smaller, along the ray through them: how fast the
compared values fall along it is measured, and how far it takes follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_values import nearer
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.trace.comparisons import Compared, Comparisons, Place

#: Share of a threshold at which the middle one of the values is that shall be below it.
HALF = 0.5

#: How far values are made smaller to find how fast what is compared falls with them, and the
#: smallest power of them as which it may fall.
PROBED, LEAST_POWER = 0.125, 0.2

#: The smallest factor of values where something is only bounded, and where it is compared
#: (heuristic: bounds of 1e-12 keep from dividing by zero; what happens below them is no fault, and
#: many right operators leave it out. A comparison chooses a formula on purpose, as a series for
#: small angles).
LEAST_BOUNDED, LEAST_COMPARED = 1e-3, 1e-6

#: Factors that are as good as one another lie this close together. So many others are tried.
ALIKE, MOST = 4.0, 2

#: What forward compares with at a sample; None where it raises.
Watch = Callable[[Sample], Comparisons | None]


def nearer_than_thresholds(
    op: Op, sample: Sample, seen: Comparisons, watch: Watch
) -> Iterator[Designed]:
    """``sample`` with smaller values, so that what forward computes of them passes thresholds that
    all of it was above.

    Args:
        op: the operator.
        sample: arguments.
        seen: what forward compares with there.
        watch: runs forward at others.
    """
    above = {
        place: item
        for place, item in seen.compared.items()
        if item.threshold > 0 and item.all_above and math.isfinite(item.middle)
    }
    probed = _watched(op, sample, PROBED, watch) if above else None
    if probed is None:
        return
    found: list[float] = []
    for place, item in above.items():
        share = _share(item, probed.compared.get(place))
        least = LEAST_BOUNDED if item.bounds else LEAST_COMPARED
        if share < least or any(one / ALIKE < share < one * ALIKE for one in found):
            continue
        if not _passes(place, _watched(op, sample, share, watch)):
            continue
        found.append(share)
        yield from nearer(op, sample, share)
        if len(found) == MOST:
            return


def _share(item: Compared, probed: Compared | None) -> float:
    """The factor by which values are made smaller; 0 where that leads nowhere."""
    if probed is None or not 0.0 < probed.middle < item.middle:
        return 0.0
    power = math.log(probed.middle / item.middle) / math.log(PROBED)
    if power < LEAST_POWER:
        return 0.0
    return float((HALF * item.threshold / item.middle) ** (1.0 / power))


def _watched(op: Op, sample: Sample, share: float, watch: Watch) -> Comparisons | None:
    there = next(iter(nearer(op, sample, share)), None)
    return None if there is None else watch(there.sample)


def _passes(place: Place, seen: Comparisons | None) -> bool:
    there = seen.compared.get(place) if seen is not None else None
    return there is not None and not there.all_above
