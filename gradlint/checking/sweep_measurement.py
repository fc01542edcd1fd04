"""From the sweep of one input, as numerics measured it, to what a report shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gradlint.base.errors import GradlintError
from gradlint.base.text import short_text
from gradlint.checking.examine import expand_samples
from gradlint.experiments.differentiable_maps import first_order
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.model.sweep import InputSweep, Measurement, SweepStep, SweepTarget, SweepVerdict
from gradlint.numerics.differences import CRITICAL
from gradlint.numerics.map import Map, working_bits
from gradlint.numerics.pair import FINEST
from gradlint.numerics.path import NODES
from gradlint.numerics.step_ladder import OK
from gradlint.numerics.sweep import Point, Sweep, sweep_input
from gradlint.numerics.verdict import DIFFERS, ROUNDED, TOLERATED, UNSURE
from gradlint.ops.phase import phase
from gradlint.trace.op_io import Input, OpRaised
from gradlint.trace.problem import Problem

#: A step lies on the plateau of a wrong gradient where its error exceeds this many times what
#: truncation and roundoff explain.
PLATEAU = 3.0


def empty_input(item: Input) -> InputSweep:
    """An input that has no elements, and so nothing to sweep."""
    return InputSweep(item.name, *_shape(item.value), verdict="empty")


def sweep_one(op: Op, problem: Problem, function: Map, index: int, steps: int | None) -> InputSweep:
    """Sweep input ``index`` of ``problem``.

    Args:
        op: the operator, for the surrogates it declares.
        problem: the op on its sample; function: its first-order map.
        steps: number of steps, None for the default.
    """
    item = problem.inputs[index]
    found = sweep_input(function, index, seed=problem.seed, steps=steps)
    pair = found.pair
    usable = sum(point.state == OK for point in found.points)
    verdict: SweepVerdict = "agrees"
    reason = ""
    if found.verdict == DIFFERS:
        declared = op.intent.surrogate or {}
        verdict = "surrogate" if item.name in declared else "differs"
    elif found.verdict == UNSURE:
        verdict = "cannot tell"
        reason = found.note or ("no steps" if usable < 3 else "noise")
    elif found.verdict == ROUNDED:
        reason = "rounded"
    elif found.settled:
        reason = f"by {found.settled}"
    known = pair.h > 0.0
    slope = max(abs(pair.claimed), abs(pair.measured))
    return InputSweep(
        item.name,
        *_shape(item.value),
        verdict=verdict,
        reason=reason,
        claimed=pair.claimed if known else None,
        measured=pair.measured if known else None,
        error=pair.error if known else None,
        bar=pair.bar if known else None,
        relative_error=(pair.error / slope if slope else 0.0) if known else None,
        resolution=pair.resolution if known else None,
        tolerated=TOLERATED[working_bits(function, item.value)],
        chosen_step=pair.h if known else None,
        noise_factor=found.kappa,
        noise=found.kappa * found.unit,
        noise_level=found.noise.level if found.noise else None,
        noise_roundings=found.roundings if found.noise else None,
        noise_spacing=found.noise.spacing if found.noise else None,
        output_dtype=_coarsest(item.value, function),
        curvature=found.curvature or None,
        truncation_from=found.branch[0] or None,
        truncation_to=found.branch[1] or None,
        measurements=_measurements(found, function, item.value),
        left_out=found.measures.left_out,
        elements=found.elements.total,
        elements_seen=found.elements.seen,
        element_resolution=found.elements.resolution if known and found.elements.total else None,
        kinked=found.kinked,
        outputs=sum(output.numel() for output in function.outputs),
        steps=[_step(point, found) for point in found.points],
    )


def _measurements(found: Sweep, function: Map, x: torch.Tensor) -> list[Measurement]:
    """The measurements of one direction, all judged by the scale of the verdict's own pair."""
    bits, pair = working_bits(function, x), found.pair
    measured = []

    def add(
        method: str, residual: float, bar: float, steps: int, smallest: float, largest: float
    ) -> None:
        scale = pair.scale or found.measures.product
        agrees: bool | None = abs(residual) <= bar + TOLERATED[bits] * scale
        if not agrees and method == "path integral" and found.verdict != DIFFERS:
            agrees = None
        measured.append(
            Measurement(
                method,
                residual,
                bar,
                max(bar / scale, FINEST) if scale > 0.0 else bar,
                agrees,
                steps,
                smallest,
                largest,
            )
        )

    if pair.h > 0.0:
        ladder = [point.h for point in found.points if point.state == OK]
        coarser = min((h for h in ladder if h > pair.h), default=pair.h)
        add("extrapolation", pair.measured - pair.claimed, pair.bar, 2, pair.h, coarser)
    window = found.measures.window
    if window is not None:
        bar = window.bar(bits, found.measures.product)
        add("window fit", window.residual, bar, window.steps, window.smallest, window.largest)
    for path in found.measures.paths:
        add("path integral", path.residual, path.bar, len(NODES), path.h, path.h)
    return measured


def _step(point: Point, found: Sweep) -> SweepStep:
    if math.isnan(point.residual):
        return SweepStep(point.h, point.state)
    limit = "truncation" if point.truncation > point.roundoff else "roundoff"
    if found.verdict == DIFFERS and abs(point.residual) > PLATEAU * (
        point.truncation + CRITICAL * point.roundoff
    ):
        limit = "plateau"
    return SweepStep(
        point.h,
        point.state,
        numeric=point.slope if point.state == OK else None,
        claimed=found.pair.claimed,
        error=abs(point.residual),
        truncation=point.truncation or None,
        roundoff=point.roundoff,
        limit=limit,
        chosen=point.h == found.pair.h,
    )


def _shape(value: Any) -> tuple[list[int], str]:
    return list(value.shape), str(value.dtype).removeprefix("torch.")


def _coarsest(value: Any, function: Map) -> str:
    dtypes = [value.dtype, *(output.dtype for output in function.outputs)]
    return str(max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)).removeprefix("torch.")


def sweep_op(
    op: Op,
    samples: Sequence[Sample],
    settings: Settings,
    steps: int | None = None,
    label: str | None = None,
) -> list[SweepTarget]:
    """Sweep every input of ``op`` on one of ``samples``, in this process; one entry a dtype.

    Args:
        op: the loaded operator.
        samples: its samples.
        settings: seed, dtypes and devices count.
        steps: number of steps, None for the default.
        label: label of the sample, None for the first.

    Raises:
        GradlintError: there is no sample of this label.
    """

    chosen = [item for item in samples if label is None or item.label == label][:1]
    if not chosen:
        known = ", ".join(item.label for item in samples)
        raise GradlintError(
            f"there is no sample {label!r}", place="--sample", hint=f"known are {known}"
        )
    others = [item.label for item in samples if item is not chosen[0]]
    variants, notes = expand_samples(op, chosen, settings)
    if others:
        notes.append(f"sample {chosen[0].label}; --sample takes {', '.join(others)} too")
    found = [_sweep_sample(op, variant, settings, steps, list(notes)) for variant in variants]
    return found or [SweepTarget(op.target, op.kind, notes=notes)]


def _sweep_sample(
    op: Op, sample: Sample, settings: Settings, steps: int | None, notes: list[str]
) -> SweepTarget:

    target = SweepTarget(op.target, op.kind, sample.report(op.signature), notes=notes)
    problem = Problem(op, sample, seed=settings.seed)
    if not problem.inputs:
        notes.append("nothing to sweep: no input requires grad")
        return target
    try:
        with phase("rule"):
            function = first_order(problem)
            if not any(output.numel() for output in function.outputs):
                notes.append("nothing to sweep: no output is differentiable")
                return target
            for index, item in enumerate(problem.inputs):
                if item.value.numel() == 0:
                    target.inputs.append(empty_input(item))
                else:
                    target.inputs.append(sweep_one(op, problem, function, index, steps))
    except OpRaised as raised:
        target.error = _error_text(raised)
    return target


def _error_text(raised: Any) -> str:

    error = raised.error
    try:
        text = str(error)
    except BaseException:
        text = short_text(error)
    kind = type(error).__name__
    return f"{raised.phase} raised {kind}: {text}\n`gradlint check` on it says more"
