"""Unexplained slopes of weighted elements: the measurements of the search for wrong elements.

Each measurement moves the elements along fixed random signs s, weighted by some w, and yields the
unexplained slope Σᵢ wᵢ·sᵢ·eᵢ (e is the error of the gradient) under every set of cotangents.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from gradlint.base.clock import had_seconds
from gradlint.numerics.differences import CRITICAL, LADDER, LADDER_FINER, Step, estimate
from gradlint.numerics.directions import move_scale, signs
from gradlint.numerics.elements import Residuals

#: Evaluations of forward that one search may take at most.
MOST_CALLS = 300

#: Seconds that it may take; for slow ops it makes fewer measurements (heuristic).
MOST_SECONDS = 20.0

#: Evaluations that are allowed even for slow ops: enough to find one wrong element.
FEWEST_CALLS = 60

#: Draws of signs that are tried until the error shows: e may be orthogonal to one of them.
DRAWS = 3

#: A slope must exceed its error bar by this factor before its size is used (heuristic).
CLEAR = 8.0

#: Truncation error for a part of the elements, or along other signs, in units of that of the whole
#: (heuristic: either is a sum with random signs).
BENT = 2.0

#: Error bars belong to one draw of signs; along another one they are larger by this factor
#: (heuristic).
OTHER_DRAW = 3.0

#: Share of the distance between neighbouring whole numbers by which a ratio may miss one
#: (heuristic).
NEAR = 0.2

#: Best relative accuracy of a ratio of two sums in float64 (heuristic: 10 digits).
TINY = 1e-10

#: Truncation error of a single element's slope, as a share of it (heuristic: 2^−8 squared is 2e-5,
#: and the third derivative is allowed to be fifty times its typical size).
CURVED = 1e-3


class Spent(Exception):
    """The budget of calls or time is used up."""


class Slopes:
    """Unexplained slopes along fixed signs, within a budget.

    Args:
        residuals: under the cotangents for which the disagreement is clearest.
        seed: seed of signs and samples.
        most_calls: evaluations of forward allowed.
    """

    def __init__(self, residuals: Residuals, seed: int, most_calls: int) -> None:
        self.residuals, self.limit = residuals, residuals.calls + most_calls
        self.generator = torch.Generator().manual_seed(seed)
        self.shape = tuple(residuals.value.shape)
        self.count = residuals.value.numel()
        self.base = torch.zeros(0)
        self.h = 0.0
        self.total: list[float] = []
        self.bars: list[float] = []

    def start(self) -> bool:
        """Draw signs along which the error shows, and choose a step; False if it never shows."""
        best = 0.0
        ladder = LADDER[self.residuals.bits]
        finer = LADDER_FINER[self.residuals.bits]
        for _ in range(DRAWS):
            drawn = self.draw()
            began, before = had_seconds(), self.residuals.calls
            steps: list[list[Step]] = []
            for exponents in (ladder, finer):
                taken = [self.residuals.step(drawn, 2.0**-e) for e in exponents]
                steps += [step for step in taken if step is not None]
                best = self._settle(drawn, steps, best)
                if best > CLEAR**2:
                    break
            each = (had_seconds() - began) / (self.residuals.calls - before)
            allowed = max(FEWEST_CALLS, int(MOST_SECONDS / max(each, 1e-9)))
            self.limit = min(self.limit, self.residuals.calls + allowed)
            if best > CLEAR**2:
                break
        return best > 1.0

    def _settle(self, drawn: torch.Tensor, steps: list[list[Step]], best: float) -> float:
        """Choose the step at which the error stands out most, if it does so by more than ``best``;
        returns the larger of the two factors."""
        sets = range(len(self.residuals))
        fitted = [estimate([step[k] for step in steps], self.residuals.kappa) for k in sets]
        for coarse, fine in itertools.pairwise(steps):
            totals, bars = [], []
            for k, found in enumerate(fitted):
                if found is None:
                    continue
                # One step may have no truncation error by chance; the coarser one does not as well.
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

    def draw(self) -> torch.Tensor:
        """A fresh direction of random signs, inside the domain of the input."""
        x = self.residuals.value
        return self.residuals.function.projected(
            self.residuals.index, move_scale(x) * signs(x, self.generator)
        )

    def slopes(self, weight: torch.Tensor, base: torch.Tensor | None = None) -> list[float]:
        """Unexplained slopes with the elements weighted by ``weight`` (broadcastable)."""
        if self.residuals.calls >= self.limit:
            raise Spent
        base = self.base if base is None else base
        u = base * weight.to(device=base.device, dtype=torch.float64)
        found = self.residuals.step(
            self.residuals.function.projected(self.residuals.index, u), self.h
        )
        if found is None:
            raise Spent
        return [step.residual for step in found]

    def nil(self, slopes: Sequence[float], slack: float = 1.0) -> bool:
        """Whether these slopes are zero within their error bars times ``slack``."""
        return all(abs(s) <= slack * bar for s, bar in zip(slopes, self.bars, strict=True))

    def wrong_alone(self, element: int) -> bool:
        """Whether one element is wrong. Truncation is taken as a share of the element's own slope,
        because the error bars of the whole tensor would hide it."""
        if self.residuals.calls >= self.limit:
            raise Spent
        weight = torch.zeros(self.shape, dtype=torch.float64, device=self.base.device)
        weight.view(-1)[element] = 1.0
        u = self.residuals.function.projected(self.residuals.index, self.base * weight)
        found = self.residuals.step(u, self.h)
        if found is None:
            raise Spent
        return any(
            abs(step.residual)
            > CRITICAL * self.residuals.kappa * step.noise
            + CURVED * max(abs(step.slope), abs(step.slope - step.residual))
            for step in found
        )

    def all_right_outside(self, mask: torch.Tensor) -> bool:
        """Whether nothing outside ``mask`` is wrong, under two draws of signs."""
        outside = ~mask
        if not self.nil(self.slopes(outside)):
            return False
        return self.nil(self.slopes(outside, self.draw()), OTHER_DRAW)

    def number(self, numbers: torch.Tensor, size: int) -> int | None:
        """The number below ``size`` that all wrong elements share, or None.

        Args:
            numbers: the number of each element (its row, for example), broadcastable.
        """
        reach = max(map(self._reach, range(len(self.bars))))
        if size == 1 or reach < 1.0:
            return None
        radix = int(min(size, max(2.0, reach)))
        number, place = 0, 1
        while place < size:
            digit = self.digit((numbers // place) % radix, radix)
            if digit is None:
                return None
            number += digit * place
            place *= radix
        return number if number < size else None

    def _reach(self, k: int) -> float:
        """How many numbers the slopes under cotangents ``k`` can distinguish."""
        return NEAR * abs(self.total[k]) / max(2.0 * self.bars[k], abs(self.total[k]) * TINY)

    def digit(self, digits: torch.Tensor, radix: int) -> int | None:
        """The digit that all wrong elements share: the ratio of two slopes."""
        clear = [k for k in range(len(self.bars)) if self._reach(k) >= radix / 2.0]
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
