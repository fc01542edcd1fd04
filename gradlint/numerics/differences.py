"""Central differences over a ladder of steps, with realised displacements and error bars.

φ(t) = Re⟨v, f(x + t·u)⟩. For each step h:

    x± = fl(x ± h·u)            what the op really gets, rounded to its dtype
    dx = x₊ − x₋ in float64     the realised displacement, never the nominal 2h·u
    c  = Re⟨v, f(x₊) − f(x₋)⟩   differences taken element by element, summed in float64
    r  = (c − Re⟨g, dx⟩) / 2h   the slope that the claimed gradient g leaves unexplained

Two neighbouring steps extrapolate to R_k = r_k + (r_k − r_{k−1}) / (ρ² − 1), ρ = h_{k−1}/h_k
(Richardson 1911). If the ladder converges, the truncation error of R_k is at most |R_k − R_{k−1}|,
which is the error estimate of Ridders (1982) with one level of extrapolation.

Source: gradlint/docs/numerics.md, sections "Realised displacement" and "Step ladder".
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.products import norm, real_dot, unit_roundoff, widened

#: Exponents e of the steps 2^−e tried first, by significand bits; the ratio is 8 in float64, 2 or 4
#: below. They lie around ε^⅓, where truncation and roundoff of a central difference are equal
#: (Dennis & Schnabel 1983, §5.6).
LADDER = {53: (13, 16, 19), 24: (4, 6, 8, 10), 11: (2, 3, 4, 5), 8: (1, 2, 3, 4)}

#: The single exponent tried before all others in float64; lower precision begins with a path
#: integral instead. The truncation error there, 1e-11 of the third derivative, is about the noise.
GLANCE = {53: 17}

#: Exponents tried if the first ones decide nothing: finer ones for functions that bend or have
#: kinks nearby, coarser ones for noisy functions. Float32 inside a float64 function needs three
#: coarse ones: two to extrapolate, one more to see it converge.
LADDER_FINER = {53: (22, 25), 24: (12, 14), 11: (6,), 8: (5,)}
LADDER_COARSER = {53: (3, 5, 7, 10), 24: (2, 3), 11: (1,), 8: ()}

#: Still finer exponents for functions that none of these steps resolves: sin(1e6·x), or a pole or
#: singular matrix nearby.
LADDER_FINEST = {53: (28, 31, 34)}

#: Standard deviations that roundoff may reach: two-sided Gaussian probability 1e-10 (numerics.md,
#: section "Verdict").
CRITICAL = 6.5

#: The truncation error is taken as this many times the last change of the extrapolation
#: (heuristic). If f jumps at x, slopes grow like 1/h and successive extrapolations differ by 7/8 of
#: their size; at a vertical tangent, by 2/3. Three times either exceeds the estimate itself, so
#: neither ever passes for a measurement.
TRUNCATION_SAFETY = 3.0

#: Standard deviations by which a finer estimate may miss a coarser one: twice :data:`CRITICAL`,
#: since steps of a few ulps have larger errors than independent rounding (heuristic; up to 8 were
#: observed for float32 inside float64).
BORNE_OUT = 2.0 * CRITICAL

#: Number of neighbouring triples of steps whose scatter is pooled into one noise estimate.
NOISE_TRIPLES = 2

#: Scatter that grows by more than this factor to the next coarser triple of steps is truncation,
#: not noise (heuristic: if the op rounds its input, noise grows at most by the ratio of the steps,
#: 8, whereas truncation of a smooth function grows by its fifth power).
RISE = 8.0

#: Median of |z| for a standard normal z.
MEDIAN_OF_GAUSSIAN = 0.6745

#: A uniform rounding error of one ulp has variance ulp²/12.
UNIFORM = math.sqrt(1.0 / 12.0)


@dataclass(frozen=True)
class Step:
    """One central difference.

    Args:
        h: nominal step.
        slope: c / 2h, the measured slope.
        residual: the slope that the claimed gradient leaves unexplained.
        noise: standard deviation of ``slope`` if each output is rounded once (the ulp model).
    """

    h: float
    slope: float
    residual: float
    noise: float


@dataclass(frozen=True)
class Estimate:
    """The unexplained slope with its error bar.

    Args:
        residual: the slope along u that the claimed gradient leaves unexplained.
        bar: error bar of ``residual``: truncation plus :data:`CRITICAL` deviations of noise.
        slope: the measured derivative along u.
        sigma: one standard deviation of the noise in ``residual``.
        h: the finer of the two steps used.
    """

    residual: float
    bar: float
    slope: float
    sigma: float
    h: float


def significand_bits(dtype: torch.dtype) -> int:
    """Bits of the significand: 53, 24, 11 or 8."""
    return 1 - round(math.log2(unit_roundoff(dtype)))


def difference(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    x: torch.Tensor,
    u: torch.Tensor,
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    h: float,
    rounding: Sequence[float] | None = None,
) -> Step | None:
    """One central difference, or None where the function is not finite at x ± h·u.

    Args:
        evaluate: returns the outputs at a value of the input, or None if it cannot.
        x: the input; u: direction of the same shape, float64 or complex128.
        cotangents: one per output.
        claimed: the gradient under test, in the shape of ``x``.
        h: nominal step.
        rounding: additional standard deviation of an element of each output.
    """
    wide = widened(x)
    plus = torch.add(wide, u, alpha=h).to(x.dtype)
    minus = torch.sub(wide, u, alpha=h).to(x.dtype)
    # Not kept: as few large tensors as possible exist at a time.
    predicted = predicted_change(claimed, widened(plus) - widened(minus))
    after = evaluate(plus)
    del plus
    before = evaluate(minus)
    del minus
    if after is None or before is None:
        return None
    change = 0.0
    for v, high, low in zip(cotangents, after, before, strict=True):
        if high.shape != v.shape or low.shape != v.shape:
            return None
        change += real_dot(v, widened(high) - widened(low))
    noise = noise_of(cotangents, after, before, rounding)
    if not math.isfinite(change) or not math.isfinite(noise):
        return None
    width = 2.0 * h
    return Step(h, change / width, (change - predicted) / width, noise / width)


def predicted_change(claimed: torch.Tensor, moved: torch.Tensor) -> float:
    """The change of Re⟨v, f⟩ that the gradient ``claimed`` predicts.

    Args:
        moved: x₊ − x₋, as realised; float64 or complex128. Its elements that are not finite are
            those of infinite elements of x, which stay where they are.
    """
    predicted = real_dot(claimed, moved)
    if math.isfinite(predicted):
        return predicted
    return real_dot(claimed, torch.where(torch.isfinite(moved), moved, torch.zeros_like(moved)))


def noise_of(
    cotangents: Sequence[torch.Tensor],
    after: Sequence[torch.Tensor],
    before: Sequence[torch.Tensor],
    rounding: Sequence[float] | None = None,
) -> float:
    """Standard deviation of Re⟨v, f(x₊) − f(x₋)⟩ if every output element is rounded once.

    Args:
        cotangents: v; after: f(x₊); before: f(x₋); one tensor per output each.
        rounding: additional standard deviation of an element of each output.
    """
    deviation = 0.0  # summed by hypot: squares of 1e155 would overflow
    known = rounding or [0.0] * len(cotangents)
    for v, high, low, sigma in zip(cotangents, after, before, known, strict=True):
        wide = widened(v)
        if high.is_floating_point() or high.is_complex():
            ulp = unit_roundoff(high.dtype) * UNIFORM
            rounded = (ulp * norm(wide * widened(value)) for value in (high, low))
            deviation = math.hypot(deviation, *rounded)
        if sigma > 0.0:
            deviation = math.hypot(deviation, math.sqrt(2.0) * sigma * norm(wide))
    return deviation


def noise_factor(ladders: Sequence[Sequence[Step]]) -> float:
    """The factor κ ≥ 1 by which the measured noise exceeds the ulp model.

    At the finest steps, neighbouring slopes D₁, D₂, D₃ differ by noise and by the rest of the
    truncation C·h². The latter cancels in D₂ − D₃ − w·(D₁ − D₂), w = (h₂² − h₃²) / (h₁² − h₂²), so

        κ = median |D₂ − D₃ − w·(D₁ − D₂)| / (0.6745·σ)

    over all directions, σ being the deviation that the ulp model gives that combination. An op that
    claims float64 but computes in float32 is noticed here.

    Such an op rounds its input too: steps finer than that rounding leave most elements unchanged,
    and scatter less than coarser ones. So the largest median counts, from the finest steps up to
    those where it rises by more than :data:`RISE`.

    Slopes D = c / 2h divide by the nominal step, and scatter if x ± h·u is rounded (an input with
    fewer digits than the outputs). Residuals use the realised displacement, but scatter if the
    claimed gradient is far too large. Neither effect is noise of f, so the smaller scatter counts.
    """
    placed = _scatter_by_place(ladders)
    largest = 0.0
    for place in range(max(1, len(placed) - NOISE_TRIPLES + 1)):
        ratios = list(itertools.chain(*placed[place : place + NOISE_TRIPLES]))
        found = statistics.median(ratios) / MEDIAN_OF_GAUSSIAN if ratios else 0.0
        if place and found > RISE * max(1.0, largest):
            break
        largest = max(largest, found)
    return max(1.0, largest)


def _scatter_by_place(ladders: Sequence[Sequence[Step]]) -> list[list[float]]:
    """|D₂ − D₃ − w·(D₁ − D₂)| / σ for every triple of neighbouring steps: a list for the finest
    triple of each ladder, one for the next coarser triples, and so on."""
    placed: list[list[float]] = []
    for steps in ladders:
        triples = list(zip(steps, steps[1:], steps[2:], strict=False))
        for place, (coarse, middle, fine) in enumerate(reversed(triples)):
            if place == len(placed):
                placed.append([])
            weight = (middle.h**2 - fine.h**2) / (coarse.h**2 - middle.h**2)
            sigma = math.hypot(fine.noise, (1.0 + weight) * middle.noise, weight * coarse.noise)
            if sigma > 0.0:
                slopes = middle.slope - fine.slope - weight * (coarse.slope - middle.slope)
                residuals = (
                    middle.residual - fine.residual - weight * (coarse.residual - middle.residual)
                )
                placed[place].append(min(abs(slopes), abs(residuals)) / sigma)
    return placed


def at_a_glance(step: Step) -> Estimate:
    """The estimate from a single difference. Three times its residual counts as truncation error,
    so it can show agreement, never a disagreement."""
    bar = TRUNCATION_SAFETY * abs(step.residual) + CRITICAL * step.noise
    return Estimate(step.residual, bar, step.slope, step.noise, step.h)


def estimate(steps: Sequence[Step], kappa: float) -> Estimate | None:
    """The extrapolated residual with the smallest error bar over the ladder ``steps``.

    It needs three usable steps: two to extrapolate, one more to see that it converges. An estimate
    counts only if the finer ones agree with it within their noise: if f oscillates or saturates
    within the coarse steps, those converge as well, but to a wrong value.
    """
    found: list[Estimate] = []
    ordered = sorted(steps, key=lambda step: -step.h)
    previous: float | None = None
    for coarse, fine in itertools.pairwise(ordered):
        weight = 1.0 / ((coarse.h / fine.h) ** 2 - 1.0)
        residual = fine.residual + weight * (fine.residual - coarse.residual)
        slope = fine.slope + weight * (fine.slope - coarse.slope)
        sigma = kappa * math.hypot((1.0 + weight) * fine.noise, weight * coarse.noise)
        if previous is not None:
            bar = TRUNCATION_SAFETY * abs(residual - previous) + CRITICAL * sigma
            found.append(Estimate(residual, bar, slope, sigma, fine.h))
        previous = residual
    return best(found)


def compatible(one: Estimate, other: Estimate) -> bool:
    """Whether two measurements of the same residual agree within their error bars."""
    return abs(one.residual - other.residual) <= one.bar + other.bar


def best(found: Sequence[Estimate]) -> Estimate | None:
    """The estimate with the smallest error bar among those with which all finer ones agree within
    their noise; ``found`` is ordered from coarse to fine."""
    confirmed = [
        one
        for place, one in enumerate(found)
        if all(
            abs(one.residual - finer.residual) <= one.bar + BORNE_OUT * finer.sigma
            for finer in found[place + 1 :]
        )
    ]
    return min(confirmed, key=lambda one: one.bar, default=None)
