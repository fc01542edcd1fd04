"""Whether NaN at large magnitudes needs elements of one input that lie hundreds apart.

The values of :func:`~gradlint.experiments.finite.special_values.large` go from 10 to 10000 within
one input. A formula that overflows does so wherever an element is large. One that was made stable,
by a maximum that is taken off first, overflows only where a row holds both, as no scores do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradlint.experiments.finite.extremes import ExtremePoint, at_values, ranges_of
from gradlint.experiments.finite.value_ranges import ValueRange
from gradlint.experiments.finiteness import values_of
from gradlint.experiments.subject import Subject

#: Magnitudes as shares of the largest one (heuristic: exp overflows at a fourteenth of it, its tail
#: vanishes at a three-hundredth).
SHARES = (1.0, 0.1, 0.03, 0.01, 0.003)

#: Inputs that are large alone, at most (heuristic: each takes up to ten pairs of calls).
MOST_ALONE = 4


def needs_elements_far_apart(
    subject: Subject, extreme: ExtremePoint, position: int, index: Sequence[int]
) -> bool:
    """Whether gradients are finite wherever elements are as large and differ as they do at the
    sample: around the values that ``extreme`` has at element ``index`` of input ``position``, and
    around the same number in every input, or in one, of either sign.

    Up to 70 forward and backward calls, until one gradient is not finite.
    """
    ranges = ranges_of(subject)
    there = extreme.make()
    if any(value.is_complex() for value in there):
        return False
    for values in _alike(subject, ranges, there, position, index):
        point = at_values(subject, extreme, values)
        dense = [values_of(grad) for grad in point.gradients or [] if grad is not None]
        if point.finite and any(d is not None and not bool(d.isfinite().all()) for d in dense):
            return False
    return True


def _alike(
    subject: Subject,
    ranges: Sequence[ValueRange],
    there: Sequence[torch.Tensor],
    position: int,
    index: Sequence[int],
) -> Iterator[list[torch.Tensor]]:
    own = subject.problem.values()
    moved = [k for k, (a, b) in enumerate(zip(own, there, strict=True)) if not torch.equal(a, b)]
    shape = own[position].shape

    def around(centres: dict[int, float]) -> list[torch.Tensor] | None:
        found = list(own)
        for k, centre in centres.items():
            found[k] = own[k] + centre
            ends = (float(found[k].min()), float(found[k].max())) if own[k].numel() else ()
            if not all(ranges[k].holds(end) for end in ends):
                return None
        return found

    size = abs(float(there[position][tuple(index)]))
    centres = {}
    for k in moved:
        place = _beside(index, shape, own[k].shape)
        centres[k] = size if place is None else float(there[k][place])
    tried = [centres, {position: centres.get(position, size)}]
    for sign in (1.0, -1.0):
        for share in SHARES:
            centre = sign * share * max(float(there[k].abs().max()) for k in moved)
            tried += [dict.fromkeys(moved, centre), *({k: centre} for k in moved[:MOST_ALONE])]
    for wanted in tried:
        values = around(wanted)
        if values is not None:
            yield values


def _beside(
    index: Sequence[int], shape: Sequence[int], other: Sequence[int]
) -> tuple[int, ...] | None:
    """The element of a tensor of shape ``other`` that broadcasts to ``index`` in one of ``shape``;
    the first of those where it has more axes. None where they don't broadcast."""
    found: list[int] = []
    for back in range(1, len(other) + 1):
        size = other[-back]
        if back > len(shape) or size == 1:
            found.insert(0, 0)
        elif size == shape[-back]:
            found.insert(0, index[-back])
        else:
            return None
    return tuple(found)
