"""What is known about a wrong gradient under one cotangent, and how hypotheses are tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.numerics.products import norm, real_dot, widened

#: A hypothesis explains a measurement if it agrees within this share of the largest measurement, or
#: within :data:`BARS` error bars (heuristic: measured elements have 8 digits or more in float64).
EXPLAINED = 1e-5
BARS = 10.0

#: What wrong elements have in common is named if the probability that elements which are wrong for
#: another reason have it too is at most this (heuristic: two wrong of 12 in a range of values
#: qualify with 0.06, one of 12 does not).
MOST_CHANCE = 0.1

#: A hypothesis may leave at most this share of the error unexplained (heuristic: with wide error
#: bars alone, any hypothesis that changes little would seem to explain it).
LEFT = 0.05


@dataclass
class Evidence:
    """One cotangent's worth of evidence about input ``index``.

    Args:
        index: position of the input among the differentiable ones.
        names: names of all differentiable inputs.
        claimed: the gradients returned for all of them.
        elements: flat positions that were measured in input ``index``.
        measured: the derivative at each of them.
        bars: their error bars.
        cotangents: those passed to backward, one per output.
        move: a direction along which the slope of ⟨v, f⟩ was measured, or None.
        slope: that slope.
        slope_bar: its error bar.
        pull: returns what backward returns for this input under other cotangents; None if backward
            cannot be called again.
        values: the point, as one tensor per differentiable input; empty if not known.
        arguments: the other arguments of the call, such as numbers, masks and indices, by name.
    """

    index: int
    names: Sequence[str]
    claimed: Sequence[torch.Tensor]
    elements: torch.Tensor
    measured: torch.Tensor
    bars: torch.Tensor
    cotangents: Sequence[torch.Tensor]
    move: torch.Tensor | None = None
    slope: float = 0.0
    slope_bar: float = math.inf
    pull: Callable[[Sequence[torch.Tensor]], torch.Tensor | None] | None = None
    values: Sequence[torch.Tensor] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def own(self) -> torch.Tensor:
        """The gradient returned for this input."""
        return self.claimed[self.index]

    @property
    def complete(self) -> bool:
        """Whether every element was measured."""
        return self.own.numel() == self.elements.numel()

    @property
    def good(self) -> torch.Tensor:
        """True for the elements whose measurement succeeded."""
        return torch.isfinite(self.measured.abs())

    @property
    def usable(self) -> bool:
        """Whether anything was measured."""
        return bool(self.good.any()) or (self.move is not None and math.isfinite(self.slope_bar))


@dataclass(frozen=True)
class Fit:
    """How well a hypothesis explains the evidence.

    Args:
        misfit: largest deviation, relative to the largest measurement of its kind.
        count: number of measurements.
        before, after: sums of squared errors of the returned gradient, and of the hypothesis.
    """

    misfit: float
    count: int
    before: float = 0.0
    after: float = 0.0

    @property
    def removes_the_error(self) -> bool:
        """Whether at most :data:`LEFT` of the error remains."""
        return self.after <= LEFT**2 * self.before

    def __add__(self, other: Fit) -> Fit:
        """The fit to both sets of measurements."""
        return Fit(
            max(self.misfit, other.misfit),
            self.count + other.count,
            self.before + other.before,
            self.after + other.after,
        )

    def __str__(self) -> str:
        """The end of a sentence such as "it agrees to 2e-10 in 16 of 16 measurements"."""
        size = f" to {self.misfit:.0e}" if self.misfit > 0.0 else " exactly"
        if self.count < 2:
            return size
        return f"{size} in {self.count} of {self.count} measurements"


def wrong_elements(item: Evidence) -> torch.Tensor:
    """True for every measured element from which the returned gradient clearly deviates."""
    own, measured = at(item, item.own), item.measured
    floor = EXPLAINED * max(largest(measured), largest(own))
    error = (own - measured).abs()
    return torch.isfinite(measured.abs()) & (error > torch.clamp(BARS * item.bars, min=floor))


def neutral_elements(item: Evidence) -> torch.Tensor:
    """True for elements that are zero both as returned and as measured, so right by any formula."""
    top = max(largest(item.measured), largest(item.own))
    size = torch.maximum(at(item, item.own).abs(), item.measured.abs())
    return size <= torch.clamp(item.bars, min=EXPLAINED * top)


def wrong_and_right(
    evidence: Sequence[Evidence],
) -> tuple[Evidence, torch.Tensor, torch.Tensor] | None:
    """The first evidence with measured elements, and which of these are wrong, and which are right
    and not right by any formula, under any of the cotangents; None where nothing was measured.

    Args:
        evidence: with the same elements measured under independent cotangents, or none measured.
    """
    measured = [item for item in evidence if bool(item.good.any())]
    if not measured:
        return None
    first = measured[0]
    measured = [item for item in measured if torch.equal(item.elements, first.elements)]
    wrong = torch.stack([wrong_elements(item) for item in measured]).any(0)
    right = ~wrong & torch.stack([item.good & ~neutral_elements(item) for item in measured]).any(0)
    return first, wrong, right


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The multi-index of position ``flat`` in a row-major tensor of ``shape``."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def fit_of(evidence: Sequence[Evidence], candidates: Sequence[torch.Tensor | None]) -> Fit | None:
    """How well the candidates (what backward should have returned, one per item) agree with all
    measurements; None if they miss any of them, or do not remove the error."""
    total = Fit(0.0, 0)
    for item, candidate in zip(evidence, candidates, strict=True):
        found = meets(item, candidate)
        if found is None:
            return None
        total += found
    return total if total.count and total.removes_the_error else None


def meets(item: Evidence, candidate: torch.Tensor | None) -> Fit | None:
    """How well a candidate agrees with the measurements of one cotangent; None if it does not."""
    worst, count = 0.0, 0
    before = after = 0.0
    if candidate is None or candidate.shape != item.own.shape:
        return None
    good = item.good
    if bool(good.any()):
        measured = item.measured[good]
        error = (at(item, candidate)[good] - measured).abs()
        top = largest(measured)
        if bool((~(error <= torch.clamp(BARS * item.bars[good], min=EXPLAINED * top))).any()):
            return None
        count += int(good.sum())
        worst = max(worst, float(error.max()) / top) if top > 0.0 else worst
        before += _squared(norm(at(item, item.own)[good] - measured))
        after += _squared(norm(error))
    if item.move is not None and math.isfinite(item.slope_bar):
        products = widened(candidate).conj() * item.move
        error_of = abs(real_dot(candidate, item.move) - item.slope)
        scale = max(norm(products), abs(item.slope))
        if not error_of <= max(2.0 * item.slope_bar, EXPLAINED * scale):
            return None
        count += 1
        worst = max(worst, error_of / scale) if scale > 0.0 else worst
        before += _squared(real_dot(item.own, item.move) - item.slope)
        after += _squared(error_of)
    return Fit(worst, count, before, after)


def _squared(number: float) -> float:
    """``number`` times itself: infinite where ``**`` would raise."""
    return number * number


def agrees(evidence: Sequence[Evidence]) -> bool:
    """Whether the returned gradients themselves agree with all measurements."""
    for item in evidence:
        if bool(wrong_elements(item).any()):
            return False
        if item.move is not None and math.isfinite(item.slope_bar):
            error = abs(real_dot(item.own, item.move) - item.slope)
            if error > 2.0 * item.slope_bar + EXPLAINED * norm(
                widened(item.own).abs() * item.move.abs()
            ):
                return False
    return True


def at(item: Evidence, gradient: torch.Tensor) -> torch.Tensor:
    """The elements of ``gradient`` that were measured, in float64 or complex128, on the CPU."""
    flat = widened(gradient).reshape(-1)
    return flat[item.elements.to(flat.device)].cpu()


def largest(tensor: torch.Tensor) -> float:
    """The largest finite magnitude; 0 if no element is finite."""
    finite = tensor.detach().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0
