"""Samples in which what forward computes is on the other side of a threshold that it compares with.

A norm, a variance or an angle is above its epsilon at all usual inputs, and the branch below it
never runs. It is reached by making the inputs smaller, along the ray through them: how fast the
compared values fall along it is measured, and how far it takes follows. A distance, or the cosine
of an angle, gets there where two inputs are near one another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gradlint.inputs.designed import Designed, is_same
from gradlint.inputs.designed_values import approaches, nearer
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

#: Share of what is bounded below which a number, before it was moved, keeps from dividing by zero
#: alone (heuristic: epsilons are between 1e-12 and 1e-5).
GUARD = 1e-4

#: Share of their distance at which inputs are near one another, and those that are tried before it
#: where it is near enough (heuristic: nearer, differences lose the digits that judge a gradient).
NEAREST, NEAR = 1e-3, (0.1, 0.03, 0.01)

#: Factors that are as good as one another lie this close together. So many others are tried.
ALIKE, MOST = 4.0, 2

#: What forward compares with at a sample; None where it raises.
Watch = Callable[[Sample], Comparisons | None]

#: What passes its threshold, and where.
Passing = tuple[set[Place], Designed]


def passing_thresholds(
    op: Op,
    sample: Sample,
    compared: Mapping[Place, Compared],
    watch: Watch,
    least: float = LEAST_COMPARED,
    moved: Mapping[float, float] | None = None,
) -> Iterator[Designed]:
    """``sample`` with other values, so that what forward computes of them passes thresholds that
    all of it was on one side of: smaller ones, or inputs that are near one another.

    Args:
        op: the operator.
        sample: arguments.
        compared: what is compared there.
        watch: runs forward, or backward, at others.
        least: the smallest factor of values, where something is compared.
        moved: numbers of ``sample`` that were moved, each with what it was.
    """
    inputs = [tensor for _, tensor in sample.named_tensors(op.signature)]
    left = {
        place: item
        for place, item in compared.items()
        if item.side and not any(is_same(tensor, item.tensor) for tensor in inputs)
    }
    guards = {place for place, item in left.items() if _is_guard(item, moved or {})}
    smaller = _with_smaller_values(op, sample, left, watch, least)
    for passed, designed in itertools.chain(smaller, _near_one_another(op, sample, left, watch)):
        yield replace(designed, sample=replace(designed.sample, guarded=passed <= guards))


def _is_guard(item: Compared, moved: Mapping[float, float]) -> bool:
    """Whether the number that bounds something was as small before it was moved as what keeps from
    dividing by zero."""
    before = moved.get(item.threshold)
    return item.bounds and before is not None and before < GUARD * abs(item.middle)


def _with_smaller_values(
    op: Op, sample: Sample, left: dict[Place, Compared], watch: Watch, least: float
) -> Iterator[Passing]:
    """``sample`` with smaller values. What gets smaller with them is taken out of ``left``."""
    above = {
        place: item
        for place, item in left.items()
        if item.threshold > 0 and item.side > 0 and math.isfinite(item.middle)
    }
    probed = _watched(op, sample, PROBED, watch) if above else None
    found: list[float] = []
    for place, item in above.items() if probed is not None else ():
        share = _share(item, probed.compared.get(place) if probed is not None else None)
        if share:
            del left[place]
        reach = LEAST_BOUNDED if item.bounds else least
        if share < reach or any(one / ALIKE < share < one * ALIKE for one in found):
            continue
        if len(found) < MOST and passed_thresholds(
            {place: item}, _watched(op, sample, share, watch)
        ):
            found.append(share)
            yield from (({place}, designed) for designed in nearer(op, sample, share))


def _near_one_another(
    op: Op, sample: Sample, left: dict[Place, Compared], watch: Watch
) -> Iterator[Passing]:
    """``sample`` with one tensor near another one, or its rows near one another: distances of zero
    and cosines of one. What passes then is taken out of ``left``."""
    for make in approaches(op, sample) if left else ():
        passed = passed_thresholds(left, watch(make(NEAREST).sample))
        if not passed:
            continue
        wanted = {place: left.pop(place) for place in passed}
        shares = (
            share
            for share in NEAR
            if passed_thresholds(wanted, watch(make(share).sample)) == passed
        )
        yield passed, make(next(shares, NEAREST))
        if not left:
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


def passed_thresholds(wanted: Mapping[Place, Compared], seen: Comparisons | None) -> set[Place]:
    """Of what is compared, what was on one side alone, and is no longer, or on the other."""
    return {
        place
        for place, item in wanted.items()
        if seen is not None
        and item.side
        and (there := seen.compared.get(place)) is not None
        and there.side != item.side
    }
