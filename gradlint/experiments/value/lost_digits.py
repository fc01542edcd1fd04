"""Is a gradient wrong at large magnitudes only because its digits cancel there?

Rounding grows with the magnitudes, and is drawn anew wherever the inputs move a little. A wrong
formula is wrong by an amount that follows the inputs smoothly, and a wrong branch from a threshold
on: its error jumps. So the values are made smaller until the error is about to vanish, and moved a
little there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import real_dot, rms
from gradlint.trace.op_io import OpRaised

#: Relative errors between which one is looked at closely (heuristic: what rounding leaves of a
#: gradient changes smoothly from all digits to none; differences of float64 are finer than this).
LEAST, MOST = 1e-4, 0.1

#: Factor by which values are made smaller from one look to the next, and how often at most: by
#: 1e-4 altogether, from 10000 to one.
SMALLER, MOST_STEPS = 0.6, 18

#: Halvings of the interval in which the error comes up. An error that grows exponentially lies
#: within the limits above over a tenth of it or more; one that jumps, nowhere.
HALVINGS = 6

#: Relative shifts of all values, equally far apart, among which rounding is drawn anew, and a
#: smooth error goes on in a line (heuristic: a unit in the last place does not move what is
#: saturated; a hundredth does where a digit is left of it).
SHIFTS = tuple(2.0**-7 * k for k in range(-4, 5))

#: Second differences of the error over these shifts, relative to its size, from which on it is
#: rounding (independent draws of either sign: √6; of one sign: √1.5; a step: 0.8, a kink: 0.3).
SCATTER = 1.0

#: Directions along which it must be so: many elements that pass a threshold one after the other
#: look random along one.
DIRECTIONS = 2

#: Roundings of the outputs that differences of them may hold (heuristic: of sums, some).
ROUNDINGS = 16.0

#: Steps of differences, relative to the size of the input.
STEPS = (3e-4, 3e-5)

#: Share of ``--timeout`` that this may take, and its calls at most.
SHARE_OF_TIMEOUT = 0.1
CALLS = DIRECTIONS * (MOST_STEPS + HALVINGS + len(SHIFTS)) * (2 + 4 * len(STEPS))

#: Domains in which values may be made smaller.
_SCALABLE = ("", "all reals", "positive", "negative", "nonnegative", "nonpositive")


def is_lost_in_rounding(
    subject: Subject, position: int, values: Sequence[torch.Tensor] | None = None
) -> bool:
    """Whether the gradient of input ``position``, wrong at large ``values``, is only rounding.

    Args:
        subject: the op.
        position: of a differentiable input.
        values: of all differentiable inputs; default those of the sample.
    """
    values = list(subject.problem.values() if values is None else values)
    measured = (*values, *subject.run.cotangents.values())
    if any(item.dtype != torch.float64 for item in measured) or not subject.affords(CALLS):
        return False
    call_s = min(subject.run_s, subject.problem.quickest_s)
    if CALLS * call_s > SHARE_OF_TIMEOUT * subject.settings.timeout:
        return False
    return all(
        _is_random(_Error(subject, position, values, subject.seed + k)) for k in range(DIRECTIONS)
    )


def _is_random(error: _Error) -> bool:
    """Whether the error is random where it comes up."""
    found = _onset(error)
    if found is None:
        return False
    seen = torch.tensor([error(found * (1.0 + shift)) for shift in SHIFTS], dtype=torch.float64)
    bends = seen.diff(n=2)
    return bool(seen.isfinite().all()) and rms(bends) > SCATTER * rms(seen) > 0.0


def _onset(error: _Error) -> float | None:
    """The factor of the values at which the error lies within the limits; None where it jumps."""
    above = 1.0
    # Where few elements have lost their digits, these may weigh little along a direction.
    if not abs(error(above)) >= LEAST:  # what was found is something else
        return None
    for _ in range(MOST_STEPS):
        below = SMALLER * above
        if abs(error(below)) < LEAST:
            break
        above = below
    else:
        return None
    for _ in range(HALVINGS):
        middle = math.sqrt(below * above)
        size = abs(error(middle))
        if LEAST <= size <= MOST:
            return middle
        below, above = (middle, above) if size < LEAST else (below, middle)
    return None


class _Error:
    """The error of one gradient along one direction, relative to the slope, at values that are
    multiplied by a factor; inf where there is none."""

    def __init__(
        self, subject: Subject, position: int, values: list[torch.Tensor], seed: int
    ) -> None:
        self._subject, self._position, self._values = subject, position, values
        names = [item.name for item in subject.problem.inputs]
        domains = [subject.sample.domains.get(name, "") for name in names]
        self._scaled = [domain in _SCALABLE for domain in domains]
        generator = torch.Generator().manual_seed(seed)
        shape = tuple(values[position].shape)
        # No element weighs little: it may be the only one that has lost its digits.
        signs = torch.randn(shape, generator=generator, dtype=torch.float64).sign()
        sizes = 0.5 + torch.rand(shape, generator=generator, dtype=torch.float64)
        self._unit = (signs * sizes).to(values[position].device)

    def __call__(self, factor: float) -> float:
        pairs = zip(self._values, self._scaled, strict=True)
        there = [value.detach() * factor if scaled else value.detach() for value, scaled in pairs]
        try:
            found = self._subject.problem.pull(self._subject.run.cotangents, there)[self._position]
            if found is None or found.is_sparse:
                return math.inf
            claimed = real_dot(found, self._unit)
            slopes = [self._slope(there, step) for step in STEPS]
        except OpRaised:
            return math.inf
        errors = [
            _beyond(claimed - slope, noise) / (max(abs(claimed), abs(slope)) or 1.0)
            for slope, noise in slopes
            if math.isfinite(slope) and math.isfinite(claimed)
        ]
        return min(errors, key=abs, default=math.inf)

    def _slope(self, there: list[torch.Tensor], step: float) -> tuple[float, float]:
        """Central difference of fourth order, and what rounding of the outputs makes of it."""
        step *= rms(there[self._position]) or 1.0
        around = [self._at(there, k * step) for k in (1, -1, 2, -2)]
        one, minus, two, minus_two = (value for value, _ in around)
        noise = ROUNDINGS * torch.finfo(torch.float64).eps * max(size for _, size in around) / step
        return (8.0 * (one - minus) - (two - minus_two)) / (12.0 * step), noise

    def _at(self, there: list[torch.Tensor], step: float) -> tuple[float, float]:
        """Σ v·f at a distance along the direction, and Σ |v·f|."""
        moved = list(there)
        moved[self._position] = there[self._position] + step * self._unit
        cotangents = self._subject.run.cotangents
        terms = [
            item.value.detach() * cotangents[item.name]
            for item in self._subject.problem.forward(moved)
            if item.name in cotangents
        ]
        return sum(float(t.sum()) for t in terms), sum(float(t.abs().sum()) for t in terms)


def _beyond(error: float, noise: float) -> float:
    """``error``, or zero where it may be that of the measurement: the function, and not the
    gradient, has lost its digits there, which tells nothing about either."""
    return error if abs(error) > noise else 0.0
