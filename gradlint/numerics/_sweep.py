"""The error of the numeric derivative against the step size, along one direction of one input.

For one fixed pair (v, u) the residual r(h) = (φ(x + h·u) − φ(x − h·u) − Re⟨g, dx⟩) / 2h is
measured over decades of steps. Where the claimed gradient g is right, |r(h)| falls like C·h²
(truncation) and then grows like κ·σ/h (roundoff); where it is wrong, |r(h)| stops at the error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from gradlint.numerics._decide import KINK_STEPS, nudge
from gradlint.numerics._differences import (
    Estimate,
    Step,
    difference,
    estimate,
    noise_factor,
)
from gradlint.numerics._directions import cotangent, move_scale, product_norm, signs
from gradlint.numerics._judge import (
    AGREES,
    CLEARLY,
    DIFFERS,
    HONEST,
    ROUNDED,
    SHARE_OF_OUTPUT,
    TOLERATED,
    UNRESOLVED,
    UNSURE,
    Map,
    Pair,
    along,
    working_bits,
)
from gradlint.numerics._kinks import kinked_outputs
from gradlint.numerics._products import norm, widened

#: Exponents e of the coarsest and the finest step 2^−e, and the number of steps, by bits of the
#: significand. Relative to the size of each element, so the finest ones move it by few ulps.
RANGES = {53: (1, 45, 23), 24: (1, 21, 11), 11: (0, 10, 11), 8: (0, 7, 8)}

#: Fewest steps of a sweep: two to extrapolate, one more to see that it converges.
FEWEST_STEPS = 3

#: Pairs of neighbouring steps, counted from the finest, whose scatter is taken for noise
#: (heuristic: in float64 they lie below 2^−27, far beyond where truncation matters).
NOISE_PAIRS = 8

#: The truncation constant is fitted where the error exceeds the predicted noise this many times.
ABOVE_NOISE = 10.0

#: Steps that the fit uses: the finest ones that show truncation, where h² dominates.
FITTED_STEPS = 4

#: States of a step.
OK, NOT_FINITE, RAISED, UNCHANGED = "ok", "not finite", "raised", "no change"

#: Notes on a sweep.
KINKS, UNCONFIRMED, CLAIM_NOT_FINITE = "kinks", "not confirmed", "claim not finite"


@dataclass(frozen=True)
class Point:
    """One step of a sweep.

    Args:
        h: the step; every element moves by h times its own size, or less.
        state: :data:`OK`, :data:`NOT_FINITE` or :data:`RAISED` (no difference could be taken) or
            :data:`UNCHANGED` (too fine: the outputs do not change any more).
        slope: the numeric derivative along u, with the realised displacement.
        residual: numeric minus claimed.
        roundoff: predicted standard deviation of the noise in it, κ·σ(h).
        truncation: predicted truncation error C·h²; 0 where none was seen.
    """

    h: float
    state: str
    slope: float = math.nan
    residual: float = math.nan
    roundoff: float = math.nan
    truncation: float = math.nan


@dataclass
class Sweep:
    """All steps of one input, and what follows from them.

    Args:
        index: position of the input.
        verdict: as of ``_judge``.
        points: coarsest step first.
        pair: the verdict's numbers: claimed and measured slope, error bar, scale, chosen step.
        kappa: factor by which the measured noise exceeds one rounding of the outputs.
        curvature: C of the truncation error C·h²; 0 where none was seen.
        unit: spacing at 1 of the coarsest dtype among input and outputs.
        kinked: output elements left out because they have a kink at the point.
        note: :data:`KINKS`, :data:`UNCONFIRMED`, :data:`CLAIM_NOT_FINITE`, or empty.
    """

    index: int
    verdict: str = UNSURE
    points: list[Point] = field(default_factory=list)
    pair: Pair = field(default_factory=lambda: Pair("aligned"))
    kappa: float = 1.0
    curvature: float = 0.0
    unit: float = 0.0
    kinked: int = 0
    note: str = ""


def sweep_input(function: Map, index: int, *, seed: int, steps: int | None = None) -> Sweep:
    """Sweep the steps for input ``index`` of ``function``; a disagreement is confirmed.

    Args:
        function: the map with its claimed VJP.
        index: position of the input, which has elements.
        seed: of the cotangent v and the direction u; the confirmation uses ``seed + 1``.
        steps: number of steps, at least :data:`FEWEST_STEPS`; default by dtype.

    Returns:
        The sweep. At a kink the kinked outputs are left out; where that settles nothing, and a
        little beside the point there is no disagreement, the verdict is ``UNSURE``.
    """
    first, u = _sweep_once(function, index, seed, steps, None)
    if first.verdict == ROUNDED and _doubt(function, index, seed, steps):
        first.verdict = AGREES
    if first.verdict != DIFFERS:
        return first
    masks = _smooth(function, index, u, first.pair.h)
    kinked = sum(int((~mask).sum()) for mask in masks)
    if kinked and any(bool(mask.any()) for mask in masks):
        first, _ = _sweep_once(function, index, seed, steps, masks)
        if first.verdict != DIFFERS:
            first.kinked, first.note = kinked, KINKS
            return first
    first.kinked = kinked
    first.note = _doubt(function, index, seed, steps)
    if first.note:
        first.verdict = UNSURE
    return first


def _doubt(function: Map, index: int, seed: int, steps: int | None) -> str:
    """Why a disagreement proves nothing: it is not there along another direction, or not at a
    point a little beside (kinks can be too weak to be seen one by one); else empty."""
    again, _ = _sweep_once(function, index, seed + 1, steps, None)
    if again.verdict not in (DIFFERS, ROUNDED):
        return UNCONFIRMED
    beside = nudge(function, seed + 2)
    if beside is None:
        return ""
    there, _ = _sweep_once(beside, index, seed, steps, None)
    return "" if there.verdict in (DIFFERS, ROUNDED) else KINKS


def step_sizes(bits: int, count: int | None) -> list[float]:
    """``count`` steps, evenly spaced in the exponent over the range of a dtype; coarsest first."""
    coarsest, finest, usual = RANGES[bits]
    count = max(FEWEST_STEPS, usual if count is None else count)
    span = finest - coarsest
    return [2.0 ** -(coarsest + span * k / (count - 1)) for k in range(count)]


def _sweep_once(
    function: Map,
    index: int,
    seed: int,
    count: int | None,
    masks: Sequence[torch.Tensor] | None,
) -> tuple[Sweep, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = function.values[index]
    vs = [cotangent(output, generator) for output in function.outputs]
    if masks is not None:
        vs = [v * mask for v, mask in zip(vs, masks, strict=True)]
    claimed = function.pull(vs)[index]
    g = torch.zeros_like(x) if claimed is None else claimed
    bits = working_bits(function, x)
    sweep = Sweep(index, unit=2.0 ** (1 - bits))
    if not bool(torch.isfinite(widened(g)).all()):
        sweep.note = CLAIM_NOT_FINITE
        return sweep, torch.zeros_like(widened(x))
    u = function.projected(index, _direction(x, g, generator))
    taken = _take(along(function, index), x, u, vs, g, step_sizes(bits, count))
    states = _states(taken, bits)
    usable = [step for (step, _), state in zip(taken, states, strict=True) if state == OK and step]
    sweep.kappa = _noise(usable)
    found = estimate(usable, sweep.kappa)
    predicted = float((widened(g).conj() * u).real.sum()) if x.numel() else 0.0
    if found is not None:
        weighed = sum(
            norm(widened(v).abs() * torch.nan_to_num(widened(y)).abs())
            for v, y in zip(vs, function.outputs, strict=True)
        )
        sweep.pair = Pair(
            "aligned",
            claimed=predicted,
            measured=predicted + found.residual,
            bar=found.bar,
            sigma=found.sigma,
            scale=max(product_norm(g, u), SHARE_OF_OUTPUT[bits] * weighed) or abs(found.slope),
            h=found.h,
        )
        sweep.curvature = _curvature(usable, found, sweep.kappa)
    sweep.verdict = _verdict(sweep.pair, sweep.kappa, bits)
    sweep.points = [
        _point(h, step, state, predicted, sweep)
        for h, (step, _), state in zip(step_sizes(bits, count), taken, states, strict=True)
    ]
    return sweep, u


def _direction(x: torch.Tensor, g: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Signs that follow the claimed gradient, random where it is zero: the slope never cancels, so
    an error in it can be stated relative to it. Every element moves by half its size or more, so
    that one wrong element shows; the shares differ, so that no two equal errors cancel."""
    scale = move_scale(x)
    share = torch.rand(tuple(x.shape), generator=generator, dtype=torch.float64)
    phase = torch.sgn(widened(g))
    phase = torch.where(phase.abs() > 0.0, phase, signs(x, generator))
    return phase * scale * (0.5 + 0.5 * share).to(x.device)


def _take(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    x: torch.Tensor,
    u: torch.Tensor,
    vs: Sequence[torch.Tensor],
    g: torch.Tensor,
    sizes: Sequence[float],
) -> list[tuple[Step | None, str]]:
    """One difference a step, with the state it has by itself."""
    taken: list[tuple[Step | None, str]] = []
    for h in sizes:
        seen: list[Sequence[torch.Tensor] | None] = []

        def watched(
            value: torch.Tensor, seen: list[Sequence[torch.Tensor] | None] = seen
        ) -> Sequence[torch.Tensor] | None:
            seen.append(evaluate(value))
            return seen[-1]

        step = difference(watched, x, u, vs, g, h)
        after, before = seen
        if after is None or before is None:
            taken.append((None, RAISED))
        elif step is None:
            taken.append((None, NOT_FINITE))
        else:
            same = all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
            taken.append((step, UNCHANGED if same else OK))
    return taken


def _states(taken: Sequence[tuple[Step | None, str]], bits: int) -> list[str]:
    """``UNCHANGED`` only for an unbroken run of the finest steps, below one that changes, and only
    where it begins below 2^(−bits/3): a function that is constant farther out has slope zero."""
    states = [state for _, state in taken]
    run = 0
    for state in reversed(states):
        if state != UNCHANGED:
            break
        run += 1
    first = len(states) - run
    step = taken[first][0] if run else None
    if step is None or first == 0 or step.h > 2.0 ** (-bits / 3):
        run = 0
    kept = len(states) - run
    return [OK if state == UNCHANGED else state for state in states[:kept]] + states[kept:]


def _noise(usable: Sequence[Step]) -> float:
    """κ from the scatter of the residuals at the finest steps.

    Residuals, not slopes: they use the realised displacement, so rounding x ± h·u adds nothing.
    """
    pairs = min(NOISE_PAIRS, max(2, (len(usable) - 1) // 2))
    flat = [replace(step, slope=step.residual) for step in usable][-(pairs + 1) :]
    return noise_factor([flat[k : k + 3] for k in range(0, max(1, len(flat) - 1), 2)])


def _curvature(usable: Sequence[Step], found: Estimate, kappa: float) -> float:
    ratios = []
    for step in usable:
        excess = abs(step.residual - found.residual)
        if excess > ABOVE_NOISE * kappa * step.noise + found.bar:
            ratios.append(excess / step.h**2)
    return statistics.median(ratios[-FITTED_STEPS:]) if ratios else 0.0


def _verdict(pair: Pair, kappa: float, bits: int) -> str:
    if kappa * 2.0 ** (1 - bits) > UNRESOLVED[bits]:
        return UNSURE
    if pair.differs(TOLERATED[bits]):
        return DIFFERS
    if not pair.resolution <= HONEST[bits]:
        return UNSURE
    return ROUNDED if pair.error > CLEARLY * pair.bar else AGREES


def _point(h: float, step: Step | None, state: str, predicted: float, sweep: Sweep) -> Point:
    if step is None:
        return Point(h, state)
    return Point(
        h,
        state,
        predicted + step.residual,
        step.residual,
        sweep.kappa * step.noise,
        sweep.curvature * h * h,
    )


def _smooth(function: Map, index: int, u: torch.Tensor, chosen: float) -> list[torch.Tensor]:
    """For each output, True where no kink was seen along u within some times the chosen step."""
    x = function.values[index]
    smooth = [torch.ones(y.shape, dtype=torch.bool, device=y.device) for y in function.outputs]
    for multiple in KINK_STEPS:
        kinked = kinked_outputs(along(function, index), x, u, function.outputs, multiple * chosen)
        smooth = [good & ~bad for good, bad in zip(smooth, kinked, strict=True)]
    return smooth
