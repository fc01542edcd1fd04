"""Odd sizes that are affordable, and even ones beside them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradlint.inputs._resized import Axis, tensors_of

if TYPE_CHECKING:
    import torch

    from gradlint.rules._subject import Subject

#: Sizes of the last axis, the largest that is affordable: powers of two and one more.
LAST = (1025, 257, 129, 65, 33, 17, 9, 5)

#: Sizes of other axes: primes, and powers of two less one.
OTHERS = (31, 17, 13, 11, 7, 5, 3)

#: Elements of all tensors up to which samples grow (heuristic: outputs may have the product of two
#: tensors' sizes); those of larger samples shrink.
MOST_ELEMENTS = 4096

#: Seconds that a call at other sizes may take by a guess from the sample's, beyond :data:`OVERHEAD`
#: (heuristic: loops over elements in Python).
MOST_SECONDS, OVERHEAD = 0.5, 2e-3

#: Calls that are timed, at most.
TIMED = 3


def odd_sizes(subject: Subject, groups: dict[int, list[Axis]]) -> dict[int, int]:
    """Old size → an odd one: as large as is affordable for the last axis, distinct ones."""
    tensors = tensors_of(subject.sample)
    if not groups:
        return {}
    total = sum(tensor.numel() for tensor in tensors) or 1
    most = min(MOST_ELEMENTS, total * MOST_SECONDS / max(_seconds(subject) - OVERHEAD, 1e-6))
    largest = max(range(len(tensors)), key=lambda k: tensors[k].numel())
    axes = {axis: old for old, found in groups.items() for axis in found}
    ends = (axes.get((largest, axis)) for axis in reversed(range(tensors[largest].dim())))
    end = next((old for old in ends if old is not None), next(iter(groups)))
    others = [old for old in groups if old != end]
    for last in LAST:
        for start in range(len(OTHERS)):
            free = [size for size in OTHERS[start:] if size != last and size not in groups]
            if last == end or len(free) < len(others):
                continue
            found = {end: last, **dict(zip(others, free, strict=False))}
            if _elements(tensors, axes, found) <= most:
                return found
    alone = ({end: last} for last in LAST if last != end)
    return next((one for one in alone if _elements(tensors, axes, one) <= most), {})


def _seconds(subject: Subject) -> float:
    """Of a forward at the sample: the fastest of some, as a busy machine stalls now and then."""
    fastest = subject.run_s
    for _ in range(TIMED):
        if not OVERHEAD < fastest < MOST_SECONDS:
            break
        started = time.perf_counter()
        subject.problem.forward()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest


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
