"""Where a large gradient is wrong: few measurements that narrow the wrong elements down.

Every measurement moves the elements along fixed random signs s, weighed by some w, and yields the
unexplained slope Σᵢ wᵢ·sᵢ·eᵢ (e: the error of the gradient) under every set of cotangents. Weights
that number the slices of an axis give the index of a lone wrong slice at once, as the ratio to the
slope of w = 1; weights that are zero outside of a set tell whether anything is wrong in it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics._differences import CRITICAL, LADDER, LADDER_MORE, Step, estimate
from gradlint.numerics._directions import move_scale, signs
from gradlint.numerics._elements import Residuals
from gradlint.numerics._pattern import (
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

#: Evaluations of forward that one search may take, whatever it meets.
MOST_CALLS = 300

#: Seconds that it may take; of slow ops it measures less.
MOST_SECONDS = 20.0

#: Even of slow ops this many evaluations are made: enough for one wrong element.
FEWEST_CALLS = 60

#: Draws of signs tried until the error shows: e may lie across one of them.
DRAWS = 3

#: A slope counts as an error beyond this many times its error bar where its size is used.
CLEAR = 8.0

#: Truncation of a part of the elements, or along other signs, in units of that of the whole
#: (heuristic: either is a sum of random signs).
BENT = 2.0

#: Bars are those of one draw of signs; along another one slopes may be this much farther off.
OTHER_DRAW = 3.0

#: Share of the distance between two codes by which a ratio may miss one.
NEAR = 0.2

#: A ratio of two sums in float64 is good to this at best (heuristic: 10 digits).
TINY = 1e-10

#: Elements of a regular set that are measured one by one, to see that it is wrong throughout.
SAMPLED = 6

#: Truncation of a single element's slope, as a share of it (heuristic: 2^-8 squared is 2e-5, and
#: functions bend fifty times as much as they should at most).
CURVED = 1e-3

#: Where all of this many are wrong, no pattern of wrong ones is looked for: most elements are.
DENSE = 8

#: Scattered wrong elements that are looked for.
SCATTERED = 6


@dataclass
class Located:
    """What a search found.

    Args:
        pattern: a regular set that holds every wrong element, all but right-anyway elements of
            which are wrong as far as a sample tells; or None.
        elements: flat positions of wrong elements.
        complete: whether ``elements`` are all the wrong ones there are.
        right: flat positions found right.
    """

    pattern: Pattern | None = None
    elements: list[int] = field(default_factory=list)
    complete: bool = False
    right: list[int] = field(default_factory=list)


class _Spent(Exception):
    """The budget of calls or time is used up."""


def locate(residuals: Residuals, *, seed: int, most_calls: int = MOST_CALLS) -> Located:
    """Find the wrong elements of a gradient, or what they have in common.

    Args:
        residuals: under the cotangents where the disagreement is clearest.
        seed: of signs and samples.
        most_calls: evaluations of forward allowed.
    """
    search = _Search(residuals, seed, most_calls)
    found = Located()
    try:
        if search.start():
            search.run(found)
    except _Spent:
        pass
    return found


class _Search:
    def __init__(self, residuals: Residuals, seed: int, most_calls: int) -> None:
        self.residuals, self.limit = residuals, residuals.calls + most_calls
        self.generator = torch.Generator().manual_seed(seed)
        self.shape = tuple(residuals.value.shape)
        self.count = residuals.value.numel()
        self.base = torch.zeros(0)
        self.h = 0.0
        self.total: list[float] = []
        self.bars: list[float] = []

    # -- measuring -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Draw signs along which the error shows, and choose the step; False if it never does."""
        best = 0.0
        ladder = LADDER[self.residuals.bits]
        finer = [e for e in LADDER_MORE[self.residuals.bits] if e > ladder[-1]]
        for _ in range(DRAWS):
            drawn = self._draw()
            began, before = time.perf_counter(), self.residuals.calls
            steps: list[list[Step]] = []
            for exponents in (ladder, finer):
                taken = [self.residuals.step(drawn, 2.0**-e) for e in exponents]
                steps += [step for step in taken if step is not None]
                best = self._settle(drawn, steps, best)
                if best > CLEAR**2:
                    break
            each = (time.perf_counter() - began) / (self.residuals.calls - before)
            allowed = max(FEWEST_CALLS, int(MOST_SECONDS / max(each, 1e-9)))
            self.limit = min(self.limit, self.residuals.calls + allowed)
            if best > CLEAR**2:
                break
        return best > 1.0

    def _settle(self, drawn: torch.Tensor, steps: list[list[Step]], best: float) -> float:
        """Take the step at which the error stands out most, if by more than ``best``; returns by
        how much."""
        sets = range(len(self.residuals))
        fitted = [estimate([step[k] for step in steps], self.residuals.kappa) for k in sets]
        for coarse, fine in itertools.pairwise(steps):
            totals, bars = [], []
            for k, found in enumerate(fitted):
                if found is None:
                    continue
                # A sum may come out right by chance; the coarser one does not at the same time.
                ratio = (fine[k].h / coarse[k].h) ** 2
                bent = max(
                    abs(fine[k].residual - found.residual),
                    ratio * abs(coarse[k].residual - found.residual),
                )
                totals.append(fine[k].residual)
                bars.append(
                    found.bar + BENT * bent + CRITICAL * self.residuals.kappa * fine[k].noise
                )
            if len(totals) < len(fitted):
                continue
            clarity = max(
                abs(total) / bar if bar > 0.0 else float("inf")
                for total, bar in zip(totals, bars, strict=True)
            )
            if clarity > best:
                best, self.base, self.h = clarity, drawn, fine[0].h
                self.total, self.bars = totals, bars
        return best

    def _draw(self) -> torch.Tensor:
        x = self.residuals.value
        return self.residuals.function.projected(
            self.residuals.index, move_scale(x) * signs(x, self.generator)
        )

    def slopes(self, weight: torch.Tensor, base: torch.Tensor | None = None) -> list[float]:
        """Unexplained slopes with the elements weighed by ``weight`` (broadcastable)."""
        if self.residuals.calls >= self.limit:
            raise _Spent
        base = self.base if base is None else base
        u = base * weight.to(device=base.device, dtype=torch.float64)
        found = self.residuals.step(
            self.residuals.function.projected(self.residuals.index, u), self.h
        )
        if found is None:
            raise _Spent
        return [step.residual for step in found]

    def wrong_alone(self, element: int) -> bool:
        """Whether one element is wrong. Its own slope is what truncation is a share of: the bars
        of the whole tensor would hide it."""
        if self.residuals.calls >= self.limit:
            raise _Spent
        weight = torch.zeros(self.shape, dtype=torch.float64, device=self.base.device)
        weight.view(-1)[element] = 1.0
        u = self.residuals.function.projected(self.residuals.index, self.base * weight)
        found = self.residuals.step(u, self.h)
        if found is None:
            raise _Spent
        return any(
            abs(step.residual)
            > CRITICAL * self.residuals.kappa * step.noise
            + CURVED * max(abs(step.slope), abs(step.slope - step.residual))
            for step in found
        )

    def nil(self, slopes: Sequence[float], slack: float = 1.0) -> bool:
        """Whether nothing is wrong as far as these slopes tell."""
        return all(abs(s) <= slack * bar for s, bar in zip(slopes, self.bars, strict=True))

    def all_right_outside(self, mask: torch.Tensor) -> bool:
        """Whether nothing outside of ``mask`` is wrong, under two draws of signs."""
        outside = ~mask
        if not self.nil(self.slopes(outside)):
            return False
        return self.nil(self.slopes(outside, self._draw()), OTHER_DRAW)

    # -- the search ----------------------------------------------------------------------------

    def run(self, found: Located) -> None:
        """Fill ``found`` as far as the budget goes."""
        picks: list[Pick] = [None] * len(self.shape)
        if not self.shape:
            found.elements, found.complete = [0], True
            return
        for axis, size in enumerate(self.shape):
            number = self._number(axis, size)
            if number is not None:
                picks[axis] = range(number, number + 1)
        lone = Pattern(self.shape, tuple(picks))
        if any(pick is not None for pick in picks) and not self.all_right_outside(lone.mask()):
            picks = [None] * len(self.shape)  # ratios that came out whole by chance
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
        for axis in free:
            picks[axis] = self._periodic(axis, inside)
        self._confirm(Pattern(self.shape, tuple(picks)), found)
        if found.pattern is not None:
            return
        for pattern in self._shaped(picks, free):
            self._confirm(pattern, found)
            if found.pattern is not None:
                return
        for axis in free:
            if picks[axis] is None:
                picks[axis] = self._interval(axis, inside)
        self._confirm(Pattern(self.shape, tuple(picks)), found)
        if found.pattern is None:
            self._scattered(Pattern(self.shape, tuple(picks)).mask(), found)

    def _number(self, axis: int, size: int) -> int | None:
        """The index along ``axis`` that all wrong elements share, or None."""
        if size == 1:
            return None
        reach = max(map(self._reach, range(len(self.bars))))
        if reach < 2.0:
            return None
        radix = int(min(size, reach))
        number, place = 0, 1
        while place < size:
            digits = (torch.arange(size) // place) % radix
            digit = self._digit(along_axis(digits, axis, len(self.shape)), radix)
            if digit is None:
                return None
            number += digit * place
            place *= radix
        return number if number < size else None

    def _reach(self, k: int) -> float:
        """How many codes the slopes under cotangents ``k`` can tell apart."""
        return NEAR * abs(self.total[k]) / max(2.0 * self.bars[k], abs(self.total[k]) * TINY)

    def _digit(self, digits: torch.Tensor, radix: int) -> int | None:
        """The digit that all wrong elements share: the ratio of two slopes."""
        clear = [k for k in range(len(self.bars)) if self._reach(k) >= radix]
        if not clear:
            return None
        slopes = self.slopes((digits + 1).to(torch.float64) / radix)
        seen = set()
        for k in clear:
            ratio = radix * slopes[k] / self.total[k] - 1.0
            if abs(ratio - round(ratio)) > NEAR or not 0 <= round(ratio) < radix:
                return None
            seen.add(round(ratio))
        return seen.pop() if len(seen) == 1 else None

    def _periodic(self, axis: int, inside: torch.Tensor) -> Pick:
        """The ends of an axis, or every k-th index of it, that hold all wrong elements."""
        size, rank = self.shape[axis], len(self.shape)
        if size > 2:
            ends = torch.zeros(size, dtype=torch.bool)
            ends[0] = ends[-1] = True
            if self.all_right_outside(~inside | along_axis(ends, axis, rank)):
                return (0, size - 1)
        best: range | None = None
        for period in PERIODS:
            if size < 2 * period or (best is not None and period % best.step):
                continue
            classes = torch.arange(size) % period
            digit = self._digit(along_axis(classes, axis, rank), period)
            if digit is None:
                continue
            others = along_axis(classes != digit, axis, rank) & inside
            if self.all_right_outside(~others):
                best = range(digit, size, period)
        return best

    def _interval(self, axis: int, inside: torch.Tensor) -> Pick:
        """The smallest interval along ``axis`` that holds all wrong elements, by bisection."""
        size, rank = self.shape[axis], len(self.shape)

        def right(low: int, high: int) -> bool:
            chosen = torch.zeros(size, dtype=torch.bool)
            chosen[low:high] = True
            return low >= high or self.nil(self.slopes(along_axis(chosen, axis, rank) & inside))

        start = _last_true(lambda end: right(0, end), size - 1)
        stop = size - _last_true(lambda count: right(size - count, size), size - 1 - start)
        return None if (start, stop) == (0, size) else range(start, stop)

    def _shaped(self, picks: Sequence[Pick], free: Sequence[int]) -> list[Pattern]:
        """Diagonals, triangles and borders that hold all wrong elements."""
        found = []
        rank = len(self.shape)
        inside = Pattern(self.shape, tuple(picks)).mask()
        axes = [axis for axis in free if picks[axis] is None]
        pairs = [(a, b) for a in axes for b in axes if a < b]
        for a, b in pairs:
            distance = offsets(self.shape, a, b)
            radix = self.shape[a] + self.shape[b] - 1
            code = distance + self.shape[a] - 1
            digit = self._digit(code, radix)
            if digit is not None:
                offset = digit - self.shape[a] + 1
                found.append(Pattern(self.shape, tuple(picks), DIAGONAL, (a, b), offset))
            if self.nil(self.slopes((distance <= 0) & inside)):
                found.append(Pattern(self.shape, tuple(picks), UPPER, (a, b)))
            elif self.nil(self.slopes((distance >= 0) & inside)):
                found.append(Pattern(self.shape, tuple(picks), LOWER, (a, b)))
        for a, b in pairs[-1:]:
            border = Pattern(self.shape, (None,) * rank, BORDER, (a, b)).mask()
            if self.nil(self.slopes(~border & inside)):
                found.append(Pattern(self.shape, tuple(picks), BORDER, (a, b)))
        return found

    def _confirm(self, pattern: Pattern, found: Located) -> None:
        """Take ``pattern`` if all wrong elements lie in it and a sample of it is wrong."""
        if pattern.kind == PRODUCT and all(pick is None for pick in pattern.picks):
            return
        mask = pattern.mask()
        if not self.all_right_outside(mask):
            return
        wrong, right, blank = self._sample(mask, SAMPLED, found)
        if wrong and not right and blank <= wrong:
            found.pattern = pattern

    def _dense(self, inside: torch.Tensor, found: Located) -> bool:
        """Whether a sample of the elements ``inside`` is wrong throughout."""
        wrong, right, blank = self._sample(inside, DENSE, found)
        return right == 0 and wrong > blank

    def _sample(self, mask: torch.Tensor, size: int, found: Located) -> tuple[int, int, int]:
        """How many of ``size`` random elements of ``mask`` are wrong, right, or zero throughout
        and so right anyway."""
        positions = torch.nonzero(mask.flatten()).flatten()
        drawn = torch.randint(0, len(positions), (size,), generator=self.generator).tolist()
        # The two ends are in: what is wrong from somewhere on, or up to somewhere, shows.
        order = sorted({0, len(positions) - 1, *drawn[: size - 2]})
        wrong, right, blank = [], [], 0
        for element in positions[order].tolist():
            if self.wrong_alone(element):
                wrong.append(element)
            elif all(float(g.reshape(-1)[element].abs()) == 0.0 for g in self.residuals.claimed):
                blank += 1  # nothing is claimed and nothing is wrong: a zero of the derivative
            else:
                right.append(element)
        found.elements = sorted({*found.elements, *wrong})
        found.right = sorted({*found.right, *right})
        return len(wrong), len(right), blank

    def _scattered(self, region: torch.Tensor, found: Located) -> None:
        """Single wrong elements in ``region``, by bisection; one half is measured, the other is
        what is left of the whole."""
        positions = torch.nonzero(region.flatten()).flatten()
        whole = self.slopes(region)
        queue = [(0.0, 0, len(positions), whole)]
        wrong: list[int] = []
        while queue and len(wrong) < SCATTERED:
            queue.sort(key=lambda each: each[0])
            _, low, high, slopes = queue.pop()
            if self.nil(slopes):
                continue
            if high - low == 1:
                wrong.append(int(positions[low]))
                found.elements = sorted({*found.elements, *wrong})
                continue
            middle = (low + high) // 2
            weight = torch.zeros(self.count, dtype=torch.float64)
            weight[positions[low:middle]] = 1.0
            left = self.slopes(weight.reshape(self.shape))
            right = [a - b for a, b in zip(slopes, left, strict=True)]
            for part, start, stop in ((left, low, middle), (right, middle, high)):
                queue.append((max(map(abs, part)), start, stop, part))
        mask = torch.zeros(self.count, dtype=torch.bool)
        mask[found.elements] = True
        if not queue or all(self.nil(part) for *_, part in queue):
            found.complete = self.all_right_outside(mask.reshape(self.shape))


def _last_true(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` for which ``holds``, which holds for 0, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
