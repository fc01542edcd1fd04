"""The error of the numeric derivative against the step size, along one direction of one input.

For one fixed pair (v, u) the residual r(h) = (φ(x + h·u) − φ(x − h·u) − Re⟨g, dx⟩) / 2h is
measured over decades of steps. If the claimed gradient g is right, |r(h)| falls like C·h²
(truncation) and then grows like κ·σ/h (roundoff); if g is wrong, |r(h)| levels off at the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.base.clock import had_seconds
from gradlint.numerics._noise import Noise
from gradlint.numerics.bank import Draw, drawn
from gradlint.numerics.differences import Step, estimate
from gradlint.numerics.directions import product_norm
from gradlint.numerics.gradient_scale import SHARE_OF_OUTPUT
from gradlint.numerics.kinks import KINK_STEPS, kinked_outputs, nudge
from gradlint.numerics.map import Map, along, working_bits
from gradlint.numerics.pair import CLEARLY, Pair
from gradlint.numerics.products import norm, real_dot, widened
from gradlint.numerics.step_ladder import (
    OK,
    RANGES,
    scatter,
    states_of,
    step_sizes,
    take_steps,
    truncation_of,
)
from gradlint.numerics.sweep_measurements import (
    ALLOWED_S,
    NOISE_CALLS,
    Elements,
    Measures,
    measure,
    noise_of_draw,
    visible_elements,
)
from gradlint.numerics.verdict import (
    AGREES,
    DIFFERS,
    MIN_RESOLUTION,
    ROUNDED,
    TOLERATED,
    UNRESOLVED,
    UNSURE,
)

#: Notes on a sweep.
KINKS, UNCONFIRMED, CLAIM_NOT_FINITE = "kinks", "not confirmed", "claim not finite"


@dataclass(frozen=True)
class Point:
    """One step of a sweep.

    Args:
        h: the step; every element moves by h times its own size, or less.
        state: "ok"; "not finite" or "raised" (no difference could be taken); or "no change" (the
            step is too fine to change the outputs).
        slope: the numeric derivative along u, with the realised displacement.
        residual: numeric minus claimed.
        roundoff: predicted standard deviation of the noise in it, κ·σ(h).
        truncation: predicted truncation error C·h²; 0 if none was seen.
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
        verdict: one of the verdicts of :mod:`gradlint.numerics.verdict`.
        points: coarsest step first.
        pair: the verdict's numbers: claimed and measured slope, error bar, scale, chosen step.
        kappa: factor by which the measured noise exceeds one rounding of the outputs: the larger
            one of the values from the scatter of the finest steps and from the difference table.
        noise: noise of φ by the difference table, or None if that accepts no level.
        roundings: ``noise`` in units of one rounding of the outputs; nan if it is None.
        curvature: C of the truncation error C·h²; 0 if none was seen.
        branch: smallest and largest step that show truncation; zeros if none does.
        measures: window fit and path integrals, along the same direction.
        elements: how visible single elements are, along the same direction.
        unit: spacing at 1 of the coarsest dtype among input and outputs.
        kinked: output elements left out because they have a kink at the point.
        call_s: seconds of one evaluation.
        settled: "window fit" or "path integral" if that method decided what two steps of the
            ladder could not; else empty.
        note: :data:`KINKS`, :data:`UNCONFIRMED`, :data:`CLAIM_NOT_FINITE`, or empty.
    """

    index: int
    verdict: str = UNSURE
    points: list[Point] = field(default_factory=list)
    pair: Pair = field(default_factory=lambda: Pair("aligned"))
    kappa: float = 1.0
    noise: Noise | None = None
    roundings: float = math.nan
    curvature: float = 0.0
    branch: tuple[float, float] = (0.0, 0.0)
    measures: Measures = field(default_factory=Measures)
    elements: Elements = field(default_factory=Elements)
    unit: float = 0.0
    kinked: int = 0
    note: str = ""
    call_s: float = 0.0
    settled: str = ""


def sweep_input(function: Map, index: int, *, seed: int, steps: int | None = None) -> Sweep:
    """Sweep the steps for input ``index`` of ``function``; a disagreement is confirmed.

    Args:
        function: the map with its claimed VJP.
        index: position of the input, which has elements.
        seed: seed of the cotangent v and the direction u; the confirmation uses ``seed + 1``.
        steps: number of steps, at least ``FEWEST_STEPS``; default by dtype.

    Returns:
        The sweep. Outputs with a kink are left out; if the disagreement remains but vanishes at a
        nearby point, the verdict is ``UNSURE``.
    """
    sweep, draw = _decided(function, index, seed, steps)
    if draw is not None:
        _measure_more(function, sweep, draw)
    return sweep


def _decided(function: Map, index: int, seed: int, steps: int | None) -> tuple[Sweep, Draw | None]:
    first, draw = _sweep_once(function, index, seed, steps, None)
    if first.verdict == ROUNDED and _doubt(function, index, seed, steps):
        first.verdict = AGREES
    if first.verdict != DIFFERS or draw is None:
        return first, draw
    masks = _smooth(function, index, draw.u, first.pair.h)
    kinked = sum(int((~mask).sum()) for mask in masks)
    if kinked and any(bool(mask.any()) for mask in masks):
        first, draw = _sweep_once(function, index, seed, steps, masks)
        if first.verdict != DIFFERS:
            first.kinked, first.note = kinked, KINKS
            return first, draw
    first.kinked = kinked
    first.note = _doubt(function, index, seed, steps)
    if first.note:
        first.verdict = UNSURE
    return first, draw


def _doubt(function: Map, index: int, seed: int, steps: int | None) -> str:
    """Why a disagreement proves nothing, or "": it does not show along another direction, or not
    at a nearby point (kinks can be too weak to be seen one by one)."""
    again, _ = _sweep_once(function, index, seed + 1, steps, None)
    if again.verdict not in (DIFFERS, ROUNDED):
        return UNCONFIRMED
    nearby = nudge(function, seed + 2)
    if nearby is None:
        return ""
    there, _ = _sweep_once(nearby, index, seed, steps, None)
    return "" if there.verdict in (DIFFERS, ROUNDED) else KINKS


def _sweep_once(
    function: Map,
    index: int,
    seed: int,
    count: int | None,
    masks: Sequence[torch.Tensor] | None,
) -> tuple[Sweep, Draw | None]:
    draw = drawn(function, index, seed, masks)
    bits = working_bits(function, draw.x)
    sweep = Sweep(index, unit=2.0 ** (1 - bits))
    if not bool(torch.isfinite(widened(draw.g)).all()):
        sweep.note = CLAIM_NOT_FINITE
        return sweep, None
    sizes = step_sizes(bits, count)
    started = had_seconds()
    taken = take_steps(along(function, index), draw, sizes, function.rounding)
    sweep.call_s = (had_seconds() - started) / (2 * len(sizes))
    states = states_of(taken, bits)
    usable = [step for (step, _), state in zip(taken, states, strict=True) if state == OK and step]
    sweep.kappa = scatter(usable)
    if usable and NOISE_CALLS * sweep.call_s <= ALLOWED_S:
        measured = noise_of_draw(function, index, draw, usable[-1], bits)
        if measured is not None:
            sweep.noise, sweep.roundings = measured
            sweep.kappa = max(sweep.kappa, sweep.roundings if sweep.noise.plateau else 1.0)
    found = estimate(usable, sweep.kappa)
    predicted = real_dot(draw.g, draw.u) if draw.x.numel() else 0.0
    if found is not None:
        weighed = sum(
            norm(widened(v).abs() * torch.nan_to_num(widened(y)).abs())
            for v, y in zip(draw.vs, function.outputs, strict=True)
        )
        sweep.pair = Pair(
            "aligned",
            claimed=predicted,
            measured=predicted + found.residual,
            bar=found.bar,
            sigma=found.sigma,
            scale=max(product_norm(draw.g, draw.u), SHARE_OF_OUTPUT[bits] * weighed)
            or abs(found.slope),
            h=found.h,
            worth=max(product_norm(draw.g, draw.u), abs(found.slope)),
            tolerated=TOLERATED[bits],
        )
        sweep.curvature, sweep.branch = truncation_of(usable, found, sweep.kappa)
    sweep.verdict = _verdict(sweep.pair, sweep.kappa, bits)
    sweep.points = [
        _point(h, step, state, predicted, sweep)
        for h, (step, _), state in zip(sizes, taken, states, strict=True)
    ]
    return sweep, draw


def _measure_more(function: Map, sweep: Sweep, draw: Draw) -> None:
    """Add window fit, path integrals and the visibility of elements along the same direction."""
    bits = working_bits(function, draw.x)
    pair = sweep.pair
    sweep.measures = measure(
        function,
        sweep.index,
        draw,
        start=pair.h or 2.0 ** (-bits / 3),
        coarsest=2.0 ** -RANGES[bits][0],
        kappa=sweep.kappa,
        bits=bits,
        call_s=sweep.call_s,
    )
    if pair.h > 0.0:
        if sweep.verdict == UNSURE and not sweep.note:
            _settle(sweep, bits)
        threshold = pair.bar + TOLERATED[bits] * pair.scale
        sweep.elements = visible_elements(draw.g, draw.u, threshold)


def _settle(sweep: Sweep, bits: int) -> None:
    """Let the window fit or a path integral decide what two steps of the ladder could not."""
    if sweep.kappa * sweep.unit > UNRESOLVED[bits]:
        return
    found = [("path integral", path.residual, path.bar) for path in sweep.measures.paths]
    window, scale = sweep.measures.window, sweep.pair.scale
    if window is not None:
        bar = window.bar(bits, sweep.measures.product)
        found.append(("window fit", window.residual, bar))
    known = all(abs(r) <= bar + TOLERATED[bits] * scale for _, r, bar in found)
    method, _, bar = min(found, key=lambda one: one[2], default=("", 0.0, math.inf))
    if known and bar <= MIN_RESOLUTION[bits] * scale:
        sweep.verdict, sweep.settled = AGREES, method


def _verdict(pair: Pair, kappa: float, bits: int) -> str:
    if kappa * 2.0 ** (1 - bits) > UNRESOLVED[bits]:
        return UNSURE
    if pair.differs:
        return DIFFERS
    if not pair.sharpness <= MIN_RESOLUTION[bits]:
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
    """For each output, True where no kink was seen along u within a few times the chosen step."""
    x = function.values[index]
    smooth = [torch.ones(y.shape, dtype=torch.bool, device=y.device) for y in function.outputs]
    for multiple in KINK_STEPS:
        kinked = kinked_outputs(along(function, index), x, u, function.outputs, multiple * chosen)
        smooth = [good & ~bad for good, bad in zip(smooth, kinked, strict=True)]
    return smooth
