"""What is known of a wrong gradient under one cotangent, and how hypotheses are held against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.products import norm, real_dot, widened

#: A hypothesis explains a measurement that it meets within this share of the largest one, or
#: within its error bar (heuristic; measured elements carry 8 digits or more in float64).
EXPLAINED = 1e-5

#: In units of the error bar, likewise.
BARS = 10.0

#: A hypothesis must leave at most this share of the error that it is to explain (heuristic: error
#: bars alone would let a wide one pass for any hypothesis that changes little).
LEFT = 0.05


@dataclass
class Evidence:
    """One cotangent's worth of evidence about input ``index``.

    Args:
        index: position of the input among the differentiable ones.
        names: names of all differentiable inputs.
        claimed: the gradients returned for all of them.
        elements: flat positions measured in input ``index``.
        measured: the derivative at each of them.
        bars: their error bars.
        cotangents: what backward was given, one an output.
        move: a direction along which the slope of ⟨v, f⟩ was measured; None without.
        slope: that slope.
        slope_bar: its error bar.
        pull: what backward returns for this input given other cotangents; None where it can't be
            asked.
        values: all differentiable inputs, where the derivative was measured; empty if not known.
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
        count: measurements that it explains: all there are.
        before, after: sums of the squared errors of what was returned, and of the hypothesis.
    """

    misfit: float
    count: int
    before: float = 0.0
    after: float = 0.0

    @property
    def removes_the_error(self) -> bool:
        """Whether next to nothing is left of the error."""
        return self.after <= LEFT**2 * self.before

    def __add__(self, other: Fit) -> Fit:
        return Fit(
            max(self.misfit, other.misfit),
            self.count + other.count,
            self.before + other.before,
            self.after + other.after,
        )

    def __str__(self) -> str:
        size = f" to {self.misfit:.0e}" if self.misfit > 0.0 else " exactly"
        if self.count < 2:
            return size
        return f"{size} in {self.count} of {self.count} measurements"


def wrong_elements(item: Evidence) -> torch.Tensor:
    """True for every measured element that the returned gradient misses, bars allowed for."""
    own, measured = at(item, item.own), item.measured
    floor = EXPLAINED * max(largest(measured), largest(own))
    error = (own - measured).abs()
    return torch.isfinite(measured.abs()) & (error > torch.clamp(BARS * item.bars, min=floor))


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The multi-index of position ``flat`` in a row-major tensor of ``shape``."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def fit_of(evidence: Sequence[Evidence], candidates: Sequence[torch.Tensor | None]) -> Fit | None:
    """How well the candidates (what backward should have returned, one an item) meet all that was
    measured; None where they miss any of it, or do not get rid of the error."""
    total = Fit(0.0, 0)
    for item, candidate in zip(evidence, candidates, strict=True):
        found = meets(item, candidate)
        if found is None:
            return None
        total += found
    return total if total.count and total.removes_the_error else None


def meets(item: Evidence, candidate: torch.Tensor | None) -> Fit | None:
    """How well a candidate meets what was measured under one cotangent; None where it does not."""
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
        before += norm(at(item, item.own)[good] - measured) ** 2
        after += norm(error) ** 2
    if item.move is not None and math.isfinite(item.slope_bar):
        products = widened(candidate).conj() * item.move
        error_of = abs(real_dot(candidate, item.move) - item.slope)
        scale = max(norm(products), abs(item.slope))
        if not error_of <= max(2.0 * item.slope_bar, EXPLAINED * scale):
            return None
        count += 1
        worst = max(worst, error_of / scale) if scale > 0.0 else worst
        before += (real_dot(item.own, item.move) - item.slope) ** 2
        after += error_of**2
    return Fit(worst, count, before, after)


def agrees(evidence: Sequence[Evidence]) -> bool:
    """Whether the returned gradients themselves meet all that was measured."""
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
    """The largest finite magnitude; 0 where there is none."""
    finite = tensor.detach().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0
