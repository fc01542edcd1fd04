"""Find the wrong elements of a large gradient with few measurements.

If only one slice along an axis is wrong, weights w that number the slices yield its index at once,
as the ratio to the slope for w = 1. Weights that are zero outside a set show whether anything in
the set is wrong. See gradlint/docs/numerics.md, section "Localisation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics.elements import Residuals
from gradlint.numerics.pattern import (
    BORDER,
    DIAGONAL,
    LOWER,
    PERIODS,
    PRODUCT,
    UPPER,
    Pattern,
    Pick,
    along_axis,
    offsets,
)
from gradlint.numerics.unexplained_slopes import MOST_CALLS, Slopes, Spent

#: Elements of a regular set that are measured one by one, to check that all of it is wrong.
SAMPLED = 6

#: If this many random elements are all wrong, most elements are, and no pattern is looked for.
DENSE = 8

#: Scattered wrong elements that are looked for at most.
SCATTERED = 6


@dataclass
class Located:
    """The result of a search.

    Args:
        pattern: a regular set that contains every wrong element, and in which a sample found no
            right one except elements that are zero anyway; or None.
        elements: flat positions of wrong elements.
        complete: whether ``elements`` are all the wrong ones.
        right: flat positions of elements that were found right.
    """

    pattern: Pattern | None = None
    elements: list[int] = field(default_factory=list)
    complete: bool = False
    right: list[int] = field(default_factory=list)


def locate(residuals: Residuals, *, seed: int, most_calls: int = MOST_CALLS) -> Located:
    """Find the wrong elements of a gradient, or what they have in common.

    Args:
        residuals: under the cotangents for which the disagreement is clearest.
        seed: seed of signs and samples.
        most_calls: evaluations of forward allowed.
    """
    search = _Search(Slopes(residuals, seed, most_calls))
    found = Located()
    try:
        if search.by.start():
            search.run(found)
    except Spent:
        pass
    return found


class _Search:
    def __init__(self, by: Slopes) -> None:
        self.by, self.shape = by, by.shape

    def run(self, found: Located) -> None:
        """Fill ``found`` as far as the budget of calls allows."""
        if not self.shape:
            found.elements, found.complete = [0], True
            return
        picks = self._single_slices()
        free = [axis for axis, size in enumerate(self.shape) if picks[axis] is None and size > 1]
        if not free:
            found.pattern = Pattern(self.shape, tuple(picks))
            found.elements = torch.nonzero(found.pattern.mask().flatten()).flatten().tolist()
            found.complete = True
            return
        inside = Pattern(self.shape, tuple(picks)).mask()
        if self._dense(inside, found):
            if len(free) < sum(size > 1 for size in self.shape):
                found.pattern = Pattern(self.shape, tuple(picks))
            return
        for pattern in self._regular_sets(picks, free, inside):
            self._confirm(pattern, found)
            if found.pattern is not None:
                return
        self._scattered(Pattern(self.shape, tuple(picks)).mask(), found)

    def _single_slices(self) -> list[Pick]:
        """For each axis the only slice with wrong elements, or None if there are several."""
        picks: list[Pick] = [None] * len(self.shape)
        for axis, size in enumerate(self.shape):
            number = self.by.number(along_axis(torch.arange(size), axis, len(self.shape)), size)
            if number is not None:
                picks[axis] = range(number, number + 1)
        chosen = Pattern(self.shape, tuple(picks))
        if any(pick is not None for pick in picks) and not self.by.all_right_outside(chosen.mask()):
            return [None] * len(self.shape)  # the ratios were whole numbers by chance
        return picks

    def _regular_sets(
        self, picks: list[Pick], free: Sequence[int], inside: torch.Tensor
    ) -> Iterator[Pattern]:
        """Candidate sets, each measured only when it is asked for; narrows ``picks`` on the way."""
        for axis in free:
            picks[axis] = self._periodic(axis, inside)
        yield Pattern(self.shape, tuple(picks))
        yield from self._shaped(picks, free)
        for axis in free:
            if picks[axis] is None:
                picks[axis] = self._interval(axis, inside)
        yield Pattern(self.shape, tuple(picks))

    def _periodic(self, axis: int, inside: torch.Tensor) -> Pick:
        """Both ends of an axis, or every k-th index of it, if they contain all wrong elements."""
        size, rank = self.shape[axis], len(self.shape)
        if size > 2:
            ends = torch.zeros(size, dtype=torch.bool)
            ends[0] = ends[-1] = True
            if self.by.all_right_outside(~inside | along_axis(ends, axis, rank)):
                return (0, size - 1)
        best: range | None = None
        for period in PERIODS:
            if size < 2 * period or (best is not None and period % best.step):
                continue
            classes = torch.arange(size) % period
            digit = self.by.digit(along_axis(classes, axis, rank), period)
            if digit is None:
                continue
            others = along_axis(classes != digit, axis, rank) & inside
            if self.by.all_right_outside(~others):
                best = range(digit, size, period)
        return best

    def _interval(self, axis: int, inside: torch.Tensor) -> Pick:
        """The smallest interval along ``axis`` that contains all wrong elements, by bisection."""
        size, rank = self.shape[axis], len(self.shape)

        def right(low: int, high: int) -> bool:
            chosen = torch.zeros(size, dtype=torch.bool)
            chosen[low:high] = True
            return low >= high or self.by.nil(
                self.by.slopes(along_axis(chosen, axis, rank) & inside)
            )

        start = _last_true(lambda end: right(0, end), size - 1)
        stop = size - _last_true(lambda count: right(size - count, size), size - 1 - start)
        return None if (start, stop) == (0, size) else range(start, stop)

    def _shaped(self, picks: Sequence[Pick], free: Sequence[int]) -> list[Pattern]:
        """Diagonals, triangles and borders that contain all wrong elements."""
        found = []
        rank = len(self.shape)
        inside = Pattern(self.shape, tuple(picks)).mask()
        axes = [axis for axis in free if picks[axis] is None]
        pairs = [(a, b) for a in axes for b in axes if a < b]
        for a, b in pairs:
            distance = offsets(self.shape, a, b)
            number = self.by.number(distance + self.shape[a] - 1, self.shape[a] + self.shape[b] - 1)
            if number is not None:
                offset = number - self.shape[a] + 1
                found.append(Pattern(self.shape, tuple(picks), DIAGONAL, (a, b), offset))
            if self.by.nil(self.by.slopes((distance <= 0) & inside)):
                found.append(Pattern(self.shape, tuple(picks), UPPER, (a, b)))
            elif self.by.nil(self.by.slopes((distance >= 0) & inside)):
                found.append(Pattern(self.shape, tuple(picks), LOWER, (a, b)))
        for a, b in pairs[-1:]:
            border = Pattern(self.shape, (None,) * rank, BORDER, (a, b)).mask()
            if self.by.nil(self.by.slopes(~border & inside)):
                found.append(Pattern(self.shape, tuple(picks), BORDER, (a, b)))
        return found

    def _confirm(self, pattern: Pattern, found: Located) -> None:
        """Accept ``pattern`` if all wrong elements lie in it and a sample of it is wrong."""
        if pattern.kind == PRODUCT and all(pick is None for pick in pattern.picks):
            return
        mask = pattern.mask()
        if not self.by.all_right_outside(mask):
            return
        wrong, right, blank = self._sample(mask, SAMPLED, found)
        if wrong and not right and blank <= wrong:
            found.pattern = pattern
            found.complete = int(mask.sum()) == 1

    def _dense(self, inside: torch.Tensor, found: Located) -> bool:
        """Whether all elements of a sample from ``inside`` are wrong."""
        wrong, right, blank = self._sample(inside, DENSE, found)
        return right == 0 and wrong > blank

    def _sample(self, mask: torch.Tensor, size: int, found: Located) -> tuple[int, int, int]:
        """How many of ``size`` random elements of ``mask`` are wrong, how many right, and how many
        zero in every claimed gradient, which would be right under any formula."""
        positions = torch.nonzero(mask.flatten()).flatten()
        drawn = torch.randint(0, len(positions), (size,), generator=self.by.generator).tolist()
        # Both ends belong to the sample: they show an error that begins or ends somewhere inside.
        order = sorted({0, len(positions) - 1, *drawn[: size - 2]})
        wrong, right, blank = [], [], 0
        for element in positions[order].tolist():
            if self.by.wrong_alone(element):
                wrong.append(element)
            elif all(float(g.reshape(-1)[element].abs()) == 0.0 for g in self.by.residuals.claimed):
                blank += 1  # claimed to be zero and right: the derivative vanishes there
            else:
                right.append(element)
        found.elements = sorted({*found.elements, *wrong})
        found.right = sorted({*found.right, *right})
        return len(wrong), len(right), blank

    def _scattered(self, region: torch.Tensor, found: Located) -> None:
        """Find single wrong elements in ``region`` by bisection: one half is measured, the other
        is the whole minus that."""
        positions = torch.nonzero(region.flatten()).flatten()
        whole = self.by.slopes(region)
        queue = [(0.0, 0, len(positions), whole)]
        wrong: list[int] = []
        while queue and len(wrong) < SCATTERED:
            queue.sort(key=lambda each: each[0])
            _, low, high, slopes = queue.pop()
            if self.by.nil(slopes):
                continue
            if high - low == 1:
                wrong.append(int(positions[low]))
                found.elements = sorted({*found.elements, *wrong})
                continue
            middle = (low + high) // 2
            weight = torch.zeros(self.by.count, dtype=torch.float64)
            weight[positions[low:middle]] = 1.0
            left = self.by.slopes(weight.reshape(self.shape))
            right = [a - b for a, b in zip(slopes, left, strict=True)]
            for part, start, stop in ((left, low, middle), (right, middle, high)):
                queue.append((max(map(abs, part)), start, stop, part))
        mask = torch.zeros(self.by.count, dtype=torch.bool)
        mask[found.elements] = True
        if not queue or all(self.by.nil(part) for *_, part in queue):
            found.complete = self.by.all_right_outside(mask.reshape(self.shape))


def _last_true(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` for which ``holds`` is true, by bisection; it is for 0."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
