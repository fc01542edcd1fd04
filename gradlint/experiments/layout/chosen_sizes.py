"""Which sizes axes are changed to: odd ones, as large as calls are quick enough for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import (
    Axis,
    resized,
    tensors_of,
)
from gradlint.numerics.timing import least_seconds
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: Sizes of the last axis, the largest that is affordable: a little beyond powers of two, and no
#: multiples of three, so that blocks of three leave a rest as well.
LAST_AXIS_SIZES = (1025, 257, 131, 67, 37, 17, 11, 5)

#: Sizes of other axes: primes, and powers of two less one.
OTHER_AXIS_SIZES = (31, 17, 13, 11, 7, 5, 3)

#: Elements of all tensors up to which samples grow (heuristic: outputs may have the product of two
#: tensors' sizes); those of larger samples shrink.
MOST_ELEMENTS = 4096

#: Seconds that a call at other sizes may take by a guess from the sample's, beyond :data:`OVERHEAD`
#: (heuristic: loops over elements in Python).
MOST_SECONDS, OVERHEAD = 0.5, 2e-3

#: Seconds up to which a call is timed again, as a busy machine stalls one now and then.
TIMED_AGAIN_S = 2.0

#: A time is extrapolated to at most this many times the elements that were timed.
LARGEST_EXTRAPOLATION = 4


def affordable_sizes(subject: Subject, groups: dict[int, list[Axis]]) -> tuple[dict[int, int], str]:
    """The :func:`odd_sizes` that calls are quick enough for, and a note where they are smaller.

    How the time grows with the size is measured by calls at two sizes: one alone does not show how
    much of the time is constant overhead, which on a slow machine may be nearly all of it.
    """
    usual = odd_sizes(subject, groups)
    if not usual:
        return {}, ""
    before = sum(tensor.numel() for tensor in tensors_of(subject.sample)) or 1
    seconds = _seconds(subject.problem, min(subject.run_s, subject.problem.quickest_s))
    sizes = odd_sizes(subject, groups, before * MOST_SECONDS / max(seconds - OVERHEAD, 1e-6))
    while sizes and sizes != usual:
        change = {axis: new for old, new in sizes.items() for axis in groups[old]}
        sample = resized(subject.sample, change, seed=subject.seed)
        elements = 0 if sample is None else sum(t.numel() for t in tensors_of(sample))
        if sample is None or elements <= before:
            break
        problem = subject.problem.at(sample)
        try:
            longer = _seconds(problem)
        except OpRaised:
            break
        finally:
            subject.problem.forward_calls += problem.forward_calls
        each = max(longer - seconds, 1e-9) / (elements - before)
        most = min(elements + (MOST_SECONDS - longer) / each, LARGEST_EXTRAPOLATION * elements)
        further = odd_sizes(subject, groups, most)
        if longer > MOST_SECONDS or further == sizes:
            break
        before, seconds, sizes = elements, longer, further
    small = sizes != usual
    return sizes, f"odd sizes stay small: a call takes {seconds:.2g} s" if small else ""


def odd_sizes(
    subject: Subject, groups: dict[int, list[Axis]], most: float = MOST_ELEMENTS
) -> dict[int, int]:
    """Old size → an odd one: as large as ``most`` elements allow for the last axis, distinct ones.

    Args:
        most: elements of all tensors; never more than :data:`MOST_ELEMENTS`.
    """
    tensors = tensors_of(subject.sample)
    if not groups:
        return {}
    most = min(most, MOST_ELEMENTS)
    largest = max(range(len(tensors)), key=lambda k: tensors[k].numel())
    axes = {axis: old for old, found in groups.items() for axis in found}
    ends = (axes.get((largest, axis)) for axis in reversed(range(tensors[largest].dim())))
    end = next((old for old in ends if old is not None), next(iter(groups)))
    others = [old for old in groups if old != end]
    for last in LAST_AXIS_SIZES:
        for start in range(len(OTHER_AXIS_SIZES)):
            free = [
                size for size in OTHER_AXIS_SIZES[start:] if size != last and size not in groups
            ]
            if last == end or len(free) < len(others):
                continue
            found = {end: last, **dict(zip(others, free, strict=False))}
            if _elements(tensors, axes, found) <= most:
                return found
    alone = ({end: last} for last in LAST_AXIS_SIZES if last != end)
    return next((one for one in alone if _elements(tensors, axes, one) <= most), {})


def _seconds(problem: Problem, known: float = math.inf) -> float:
    return least_seconds(problem.forward, OVERHEAD, known=known, most=TIMED_AGAIN_S)


def twice_a_prime(size: int) -> int:
    """The smallest 2·p above ``size`` with p a prime beyond 3: even, and divisible by nothing else
    that a block may be."""
    p = max(5, size // 2 + 1)
    while any(p % k == 0 for k in range(2, math.isqrt(p) + 1)):
        p += 1
    return 2 * p


def _elements(tensors: Sequence[torch.Tensor], axes: dict[Axis, int], sizes: dict[int, int]) -> int:
    total = 0
    for number, tensor in enumerate(tensors):
        shape = list(tensor.shape)
        for axis, old in enumerate(shape):
            shape[axis] = sizes.get(axes.get((number, axis), -1), old)
        total += math.prod(shape)
    return total
