"""The slope from a window of neighbouring steps, by weighted least squares.

Over eight steps of ratio √2, with y = r(h)·h (half the unexplained change) and t = h/h_max,

    y = a₀·t + a₁·t³ + a₂·t⁵,    weights 1/s²,  s = κ·σ(h)·h

so that a₀/h_max is the unexplained slope; the odd powers are what a central difference leaves of a
smooth function. The window is as coarse as it can be while χ² and the finer windows bear it out.

Source: ``peers.md`` §2, "Window fit".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.differences import CRITICAL, Step

#: Steps in a window, and their ratio (``peers.md`` §2).
WINDOW = 8
RATIO = math.sqrt(2.0)

#: Powers of t that the fit uses.
POWERS = (1, 3, 5)

#: A window is refused where χ² this large has a probability below this (``peers.md`` §2).
LEAST_PROBABILITY = 1e-4

#: A window's slope must agree with those of finer windows within this many of their standard errors
#: (heuristic: about the same probability as :data:`LEAST_PROBABILITY`).
WITHIN = 4.0

#: Finer windows with which a coarser one is compared.
COMPARED = 4

#: Coarser windows tried at most (heuristic: twenty notches are a factor of 1000).
NOTCHES = 20

#: The first window begins here, in notches from the step that the caller offers, or else finer.
FIRST_WINDOWS = (0, -WINDOW, -2 * WINDOW)

#: Windows below this many units in the last place are refused: rounding errors of neighbouring
#: values correlate there (``peers.md`` §2 and §5).
FEWEST_UNITS = 32.0

#: Correlated rounding that averaging does not remove, in units of 2^−p·‖g∘u‖, by significand bits
#: (``peers.md`` §2, "Acceptance").
CORRELATED = {53: 32.0, 24: 2.0, 11: 2.0, 8: 2.0}


@dataclass(frozen=True)
class Fit:
    """The slope of one window.

    Args:
        residual: a₀/h_max, the slope that the claimed gradient leaves unexplained.
        error: its standard error, inflated where χ² exceeds the degrees of freedom.
        chi_square, freedom: of the fit.
        steps: number of steps used.
        smallest, largest: steps.
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
            bits: of the significand.
            product: ‖g∘u‖.
        """
        return CRITICAL * math.hypot(self.error, CORRELATED[bits] * 2.0**-bits * product)


def fit(steps: Sequence[Step], kappa: float) -> Fit | None:
    """Fit one window; None where there are too few steps, or none has noise to weigh it by.

    Args:
        steps: of any order and ratio; more than the powers fitted.
        kappa: factor by which noise exceeds the ulp model.
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
    """The coarsest window that is borne out, less one notch.

    Args:
        take: one central difference at a step, or None.
        start: largest step of the first window, at which truncation should not matter yet.
        coarsest: no step is larger.
        kappa: factor by which noise exceeds the ulp model.
        bits: of the significand.

    Returns:
        The fit; None where no window is borne out, or only windows within rounding.
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
