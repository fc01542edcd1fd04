"""Central differences over a ladder of steps, with realised displacements and error bars.

φ(t) = Re⟨v, f(x + t·u)⟩. For each step h:

    x± = fl(x ± h·u)            what the op really gets, rounded to its dtype
    dx = x₊ − x₋ in float64     the realised displacement, never the nominal 2h·u
    c  = Re⟨v, f(x₊) − f(x₋)⟩   differences taken element by element, summed in float64
    r  = (c − Re⟨g, dx⟩) / 2h   the slope that the claimed gradient g leaves unexplained

Two neighbouring steps extrapolate to R = r_k + (r_k − r_{k−1}) / (ρ² − 1), ρ = h_{k−1}/h_k
(Richardson), whose truncation error is at most |R_k − R_{k−1}| where the ladder converges.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.products import norm, real_dot, unit_roundoff, widened

#: Exponents of the steps 2^−e tried first, by bits of the significand. Ratio 8 in float64, 4
#: below. Around ε^⅓, where truncation and roundoff of a central difference meet
#: (Dennis & Schnabel 1983, §5.6).
LADDER = {53: (13, 16, 19), 24: (4, 6, 8, 10), 11: (2, 3, 4, 5), 8: (1, 2, 3, 4)}

#: The one exponent tried before all others, where a path integral is not the first choice: its
#: truncation error, some 1e-11 of the third derivative, is about its noise.
GLANCE = {53: 17}

#: Further exponents where the first ones do not settle the matter: finer ones for functions that
#: bend or have kinks near by, coarser ones for noisy functions. Float32 inside float64 needs three
#: coarse ones: two to extrapolate, one to see it converge.
LADDER_FINER = {53: (22, 25), 24: (12, 14), 11: (6,), 8: (5,)}
LADDER_COARSER = {53: (3, 5, 7, 10), 24: (2, 3), 11: (1,), 8: ()}

#: Exponents finer still, for functions that none of these steps resolves: sin(1e6·x), a pole or a
#: singular matrix close by.
LADDER_FINEST = {53: (28, 31, 34)}

#: Standard deviations that roundoff may reach: two-sided Gaussian probability 1e-10.
CRITICAL = 6.5

#: The last change of the extrapolation counts this many times as its truncation error. Where f
#: jumps at x, slopes grow like 1/h and successive extrapolations differ by 7/8 of their size; where
#: it has a vertical tangent, by 2/3: three times that covers either, so neither is ever taken for
#: a measurement (heuristic).
TRUNCATION_SAFETY = 3.0

#: Standard deviations by which a finer estimate may miss a coarser one: twice the critical ones,
#: since steps of few ulps have larger errors than independent rounding (heuristic; seen up to 8 for
#: float32 inside float64).
BORNE_OUT = 2.0 * CRITICAL

#: Neighbouring triples of steps from which noise is taken together.
NOISE_TRIPLES = 2

#: Noise that grows more than this from one triple of steps to the next coarser one is truncation
#: (heuristic: where the input is rounded inside, noise grows by no more than the ratio of the
#: steps, 8; truncation of a smooth function by its fifth power).
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
        noise: standard deviation of ``slope`` if outputs are rounded once (the ulp model).
    """

    h: float
    slope: float
    residual: float
    noise: float


@dataclass(frozen=True)
class Estimate:
    """The unexplained slope with its error bar, or none where no step was usable.

    Args:
        residual: what the claimed gradient misses along u, per unit step.
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
        evaluate: outputs at a value of the input, or None where it can't be evaluated.
        x: the input; u: direction, same shape, float64 or complex128.
        cotangents: one an output.
        claimed: the gradient under test, shape of ``x``.
        h: nominal step.
        rounding: further standard deviation of an element, one an output.
    """
    wide = widened(x)
    plus = torch.add(wide, u, alpha=h).to(x.dtype)
    minus = torch.sub(wide, u, alpha=h).to(x.dtype)
    moved = widened(plus) - widened(minus)
    predicted = real_dot(claimed, moved)
    if not math.isfinite(predicted):  # an infinite element stays where it is
        moved = torch.where(torch.isfinite(moved), moved, torch.zeros_like(moved))
        predicted = real_dot(claimed, moved)
    del moved  # of large tensors as few as possible live at a time
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


def noise_of(
    cotangents: Sequence[torch.Tensor],
    after: Sequence[torch.Tensor],
    before: Sequence[torch.Tensor],
    rounding: Sequence[float] | None = None,
) -> float:
    """Standard deviation of Re⟨v, f(x₊) − f(x₋)⟩ if every output element is rounded once.

    Args:
        cotangents: v; after: f(x₊); before: f(x₋); each one an output.
        rounding: further standard deviation of an element, one an output.
    """
    deviation = 0.0  # no squares: those of 1e155 overflow
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
    """κ ≥ 1, by which the measured noise exceeds the ulp model.

    At the finest steps neighbouring slopes differ by noise and by what is left of the truncation
    C·h², which the step before tells: with w = (h₂² − h₃²) / (h₁² − h₂²), the scatter
    |D₂ − D₃ − w·(D₁ − D₂)| / σ estimates κ; the median over all directions counts. An op that
    claims float64 and computes in float32 inside shows here.

    Such an op rounds its input too: steps finer than that rounding leave most elements where they
    are, and scatter less than coarser ones. So the largest median counts, from the finest steps up
    to those where it rises by more than :data:`RISE`.

    Slopes D = c / 2h divide by the nominal step, and scatter where x ± h·u is rounded (an input of
    fewer digits than the outputs); residuals use the realised displacement, but scatter where the
    claimed gradient is far too large. Neither is noise of f, so the smaller of the two counts.
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
    """|D₂ − D₃ − w·(D₁ − D₂)| / σ of every triple of neighbouring steps, for the finest triple of
    each ladder, for the next coarser one, and so on."""
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
    """What one difference tells: its residual counts three times as its own error bar, so it can
    show agreement and nothing else."""
    bar = TRUNCATION_SAFETY * abs(step.residual) + CRITICAL * step.noise
    return Estimate(step.residual, bar, step.slope, step.noise, step.h)


def estimate(steps: Sequence[Step], kappa: float) -> Estimate | None:
    """The extrapolated residual with the smallest error bar over the ladder ``steps``.

    Needs three usable steps: two to extrapolate, one more to see that it converges. An estimate
    counts only if the finer ones bear it out within their noise: where f oscillates or saturates
    within the coarse steps, those converge too, to something else.
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
    """The estimate with the smallest error bar among those that all finer ones bear out within
    their noise; ``found`` goes from coarse to fine."""
    borne_out = [
        one
        for place, one in enumerate(found)
        if all(
            abs(one.residual - finer.residual) <= one.bar + BORNE_OUT * finer.sigma
            for finer in found[place + 1 :]
        )
    ]
    return min(borne_out, key=lambda one: one.bar, default=None)
