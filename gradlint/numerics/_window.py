"""The slope from a window of neighbouring steps, by weighted least squares.

Over eight steps of ratio √2, with y = r(h)·h (half the unexplained change) and t = h/h_max,

    y = a₀·t + a₁·t³ + a₂·t⁵,    weights 1/s²,  s = κ·σ(h)·h

so that a₀/h_max is the unexplained slope; only odd powers remain in the central difference of a
smooth function. The window is the coarsest one for which χ² is plausible and with which the finer
windows agree.

Source: gradlint/docs/numerics.md, section "Window fit".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.differences import CRITICAL, Step

#: Steps in a window, and the ratio of neighbouring steps (numerics.md, section "Window fit").
WINDOW = 8
RATIO = math.sqrt(2.0)

#: Powers of t in the fitted polynomial.
POWERS = (1, 3, 5)

#: A window is rejected if a χ² at least as large has a probability below this.
LEAST_PROBABILITY = 1e-4

#: The slopes of two windows must agree within this many standard errors (heuristic: it corresponds
#: to about the same probability as :data:`LEAST_PROBABILITY`).
WITHIN = 4.0

#: Number of finer windows with which a coarser one is compared.
COMPARED = 4

#: Coarser windows tried at most (heuristic: twenty notches are a factor of 1000 in the step).
NOTCHES = 20

#: Notches from the caller's step at which the first window begins; the next is tried if it fails.
FIRST_WINDOWS = (0, -WINDOW, -2 * WINDOW)

#: Windows of fewer units in the last place are rejected, because rounding errors of neighbouring
#: values correlate there (numerics.md, sections "Window fit" and "What was measured").
FEWEST_UNITS = 32.0

#: Correlated rounding that averaging does not remove, in units of 2^−p·‖g∘u‖, by significand bits p
#: (numerics.md, section "Verdict").
CORRELATED = {53: 32.0, 24: 2.0, 11: 2.0, 8: 2.0}


@dataclass(frozen=True)
class Fit:
    """The slope of one window.

    Args:
        residual: a₀/h_max, the slope that the claimed gradient leaves unexplained.
        error: its standard error, inflated if χ² exceeds the degrees of freedom.
        chi_square, freedom: χ² of the fit and its degrees of freedom.
        steps: number of steps used.
        smallest, largest: the smallest and the largest step.
    """

    residual: float
    error: float
    chi_square: float
    freedom: int
    steps: int
    smallest: float
    largest: float

    @property
    def probability(self) -> float:
        """Probability of a χ² at least as large."""
        half = torch.tensor([0.5 * self.freedom, 0.5 * self.chi_square], dtype=torch.float64)
        return float(torch.special.gammaincc(half[0], half[1]))

    def bar(self, bits: int, product: float) -> float:
        """Error bar of ``residual``.

        Args:
            bits: significand bits p.
            product: ‖g∘u‖.
        """
        return CRITICAL * math.hypot(self.error, CORRELATED[bits] * 2.0**-bits * product)


def fit(steps: Sequence[Step], kappa: float) -> Fit | None:
    """Fit one window; None if too few steps have a known noise by which to weigh them.

    Args:
        steps: in any order and ratio; more of them than :data:`POWERS`.
        kappa: factor by which the noise exceeds the ulp model.
    """
    used = [step for step in steps if step.noise > 0.0 and math.isfinite(step.residual)]
    freedom = len(used) - len(POWERS)
    if freedom < 1:
        return None
    largest = max(step.h for step in used)
    deviation = torch.tensor([kappa * step.noise * step.h for step in used], dtype=torch.float64)
    y = torch.tensor([step.residual * step.h for step in used], dtype=torch.float64)
    t = torch.tensor([step.h / largest for step in used], dtype=torch.float64)
    design = torch.stack([t**power for power in POWERS], 1) / deviation[:, None]
    # Weighted residuals are of order one, whatever the size of the function.
    q, r = torch.linalg.qr(design)
    coefficients = torch.linalg.solve_triangular(r, (q.mT @ (y / deviation))[:, None], upper=True)
    misfit = y / deviation - (design @ coefficients)[:, 0]
    chi_square = float((misfit * misfit).sum())
    inverse = torch.linalg.solve_triangular(
        r, torch.eye(len(POWERS), dtype=torch.float64), upper=True
    )
    inflated = max(1.0, math.sqrt(chi_square / freedom))
    error = float(torch.linalg.vector_norm(inverse[0])) * inflated
    slope = float(coefficients[0, 0])
    if not math.isfinite(slope) or not math.isfinite(error) or not math.isfinite(chi_square):
        return None
    return Fit(
        slope / largest,
        error / largest,
        chi_square,
        freedom,
        len(used),
        min(step.h for step in used),
        largest,
    )


def choose_window(
    take: Callable[[float], Step | None],
    start: float,
    coarsest: float,
    kappa: float,
    bits: int,
) -> Fit | None:
    """The window one notch finer than the coarsest that the finer windows confirm.

    Args:
        take: takes one central difference at a step; returns None if that is impossible.
        start: largest step of the first window; truncation should not matter there yet.
        coarsest: upper limit for the steps.
        kappa: factor by which the noise exceeds the ulp model.
        bits: significand bits.

    Returns:
        The fit; None if no window is confirmed, or only windows of a few units in the last place.
    """
    taken: dict[int, Step | None] = {}

    def step(notch: int) -> Step | None:
        if notch not in taken:
            taken[notch] = take(start * RATIO**notch)
        return taken[notch]

    for first in FIRST_WINDOWS:
        good: list[Fit] = []
        for notch in range(first, first + NOTCHES):
            if start * RATIO**notch > coarsest * RATIO**0.5:
                break
            window = [step(notch - k) for k in range(WINDOW)]
            found = fit([one for one in window if one is not None], kappa)
            if found is None or None in window or not _borne_out(found, good):
                break
            good.append(found)
        if good:
            chosen = good[-2] if len(good) > 1 else good[-1]
            return chosen if chosen.largest >= FEWEST_UNITS * 2.0**-bits else None
    return None


def _borne_out(found: Fit, finer: Sequence[Fit]) -> bool:
    return found.probability > LEAST_PROBABILITY and all(
        abs(found.residual - one.residual) <= WITHIN * math.hypot(one.error, found.error)
        for one in finer[-COMPARED:]
    )
