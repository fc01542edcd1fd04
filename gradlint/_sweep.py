"""The Python interface and the runs of ``gradlint sweep``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradlint._errors import GradlintError

if TYPE_CHECKING:
    from gradlint.config import Settings
    from gradlint.inputs import Sample
    from gradlint.numerics._judge import Map
    from gradlint.numerics._sweep import Point, Sweep
    from gradlint.report._sweep import InputSweep, SweepReport, SweepStep, SweepTarget
    from gradlint.targets import Op, OpRef
    from gradlint.trace._problem import Problem

#: A step lies on the plateau of a wrong gradient where its error exceeds this many times what
#: truncation and roundoff explain.
_PLATEAU = 3.0


def sweep(
    op: Any,
    inputs: Any = None,
    *,
    devices: Sequence[str] = ("cpu",),
    dtypes: Sequence[str] | None = None,
    seed: int | None = None,
    steps: int | None = None,
    sample: str | None = None,
) -> SweepReport:
    """The error of the numeric derivative of ``op`` against the step size, for every input.

    Args:
        op: a ``torch.autograd.Function`` class, callable, ``nn.Module``, or ``torch.ops`` op,
            swept in this process; or the text of a target such as ``pkg.mod:Name``, swept in an
            isolated worker as on the command line.
        inputs: as for :func:`gradlint.check`: a tuple of arguments, a list of them, a dict
            name → tuple, a function that returns one of these, or an expression.
        devices: "cpu", "cuda".
        dtypes: names of dtypes, one sweep each; None for float64, or what the op accepts.
        seed: of the direction and the cotangent; None for a fresh one.
        steps: number of steps, at least 3; None for as many as suit the dtype.
        sample: label of the sample to sweep; None for the first.

    Returns:
        The report: ``.ok``, ``.inputs``, ``.to_dict()``; it prints itself.

    Raises:
        GradlintError: the target, the inputs or an option can't be used.
    """
    from gradlint._api import _names
    from gradlint.config import resolve_settings

    if steps is not None and steps < 3:
        raise GradlintError(f"steps: a sweep needs 3 steps at least, got {steps}")
    settings = resolve_settings(
        {
            "devices": _names(devices),
            "dtypes": _names(dtypes),
            "seed": seed,
            "inputs": inputs if isinstance(inputs, str) else None,
        }
    )
    if isinstance(op, str):
        if inputs is not None and not isinstance(inputs, str):
            raise TypeError("inputs of a target that is given as text must be text too")
        return sweep_target(op, settings, steps=steps, sample=sample)
    from gradlint.inputs import NoInputsFound, samples_for
    from gradlint.report._sweep import SweepTarget
    from gradlint.targets import from_object
    from gradlint.trace._state import preserved_state

    started = time.monotonic()
    loaded = from_object(op)
    given = None if isinstance(inputs, str) else inputs
    with preserved_state():
        try:
            samples = samples_for(loaded, settings, given)
            swept = sweep_op(loaded, samples, settings, steps, sample)
        except NoInputsFound as error:
            told = f"no usable inputs found; {error.line_to_add}"
            swept = [SweepTarget(loaded.target, loaded.kind, error=told)]
    return _report(swept, settings, started)


def sweep_target(
    target: str, settings: Settings, *, steps: int | None = None, sample: str | None = None
) -> SweepReport:
    """Sweep every operator that ``target`` names, each in an isolated worker.

    Raises:
        GradlintError: the target, its inputs or its specification can't be used.
        WorkerFailed: gradlint itself failed.
    """
    from gradlint import running
    from gradlint.targets import EVERY, resolve

    started = time.monotonic()
    running.start()
    refs: list[OpRef] = []
    for ref in resolve(target, settings):
        if ref.attribute == EVERY:
            refs += running.call_in_worker(
                "gradlint.targets:expand", ref, settings, timeout=settings.timeout
            )
        else:
            refs.append(ref)
    swept: list[SweepTarget] = []
    for ref in refs:
        swept += _in_worker(ref, settings, steps, sample)
    return _report(swept, settings, started)


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
    from gradlint.report._sweep import SweepTarget
    from gradlint.rules._examine import expand_samples

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
    from gradlint.report._sweep import InputSweep, SweepTarget
    from gradlint.rules._maps import first_order
    from gradlint.trace import phase
    from gradlint.trace._problem import OpRaised, Problem

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
                    target.inputs.append(
                        InputSweep(item.name, *_shape(item.value), verdict="empty")
                    )
                    continue
                target.inputs.append(_sweep_input(op, problem, function, index, steps))
    except OpRaised as raised:
        target.error = _told(raised)
    return target


def _sweep_input(
    op: Op, problem: Problem, function: Map, index: int, steps: int | None
) -> InputSweep:
    from gradlint.numerics._judge import DIFFERS, ROUNDED, TOLERATED, UNSURE, working_bits
    from gradlint.numerics._sweep import OK, sweep_input
    from gradlint.report._sweep import InputSweep

    item = problem.inputs[index]
    found = sweep_input(function, index, seed=problem.seed, steps=steps)
    pair = found.pair
    usable = sum(point.state == OK for point in found.points)
    verdict, reason = "agrees", ""
    if found.verdict == DIFFERS:
        declared = op.intent.surrogate or {}
        verdict = "surrogate" if item.name in declared else "differs"
    elif found.verdict == UNSURE:
        verdict = "cannot tell"
        reason = found.note or ("no steps" if usable < 3 else "noise")
    elif found.verdict == ROUNDED:
        reason = "rounded"
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
        output_dtype=_coarsest(item.value, function),
        curvature=found.curvature or None,
        kinked=found.kinked,
        outputs=sum(output.numel() for output in function.outputs),
        steps=[_step(point, found) for point in found.points],
    )


def _step(point: Point, found: Sweep) -> SweepStep:
    from gradlint.numerics._differences import CRITICAL
    from gradlint.numerics._judge import DIFFERS
    from gradlint.numerics._sweep import OK
    from gradlint.report._sweep import SweepStep

    if math.isnan(point.residual):
        return SweepStep(point.h, point.state)
    limit = "truncation" if point.truncation > point.roundoff else "roundoff"
    if found.verdict == DIFFERS and abs(point.residual) > _PLATEAU * (
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
    import torch

    dtypes = [value.dtype, *(output.dtype for output in function.outputs)]
    return str(max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)).removeprefix("torch.")


def _told(raised: Any) -> str:
    from gradlint.inputs import short_text

    error = raised.error
    try:
        text = str(error)
    except BaseException:
        text = short_text(error)
    kind = type(error).__name__
    return f"{raised.phase} raised {kind}: {text}\n`gradlint check` on it says more"


def _in_worker(
    ref: OpRef, settings: Settings, steps: int | None, sample: str | None
) -> list[SweepTarget]:
    from gradlint.report._sweep import SweepTarget
    from gradlint.running import WorkerFailed, call_on_target

    try:
        found: list[SweepTarget] = call_on_target(
            "gradlint._sweep:sweep_op", ref, settings, steps, sample
        )
    except WorkerFailed as failed:
        finding = failed.finding
        if finding is None:
            raise
        told = [f"{finding.code} {finding.message}", finding.help]
        if finding.severity == "info":
            return [SweepTarget(ref.target, ref.kind, notes=[line for line in told if line])]
        if finding.location is not None:
            told.insert(1, f"at {finding.location}")
        error = "\n".join(line for line in told if line)
        return [SweepTarget(ref.target, ref.kind, error=error)]
    return found


def _report(targets: list[SweepTarget], settings: Settings, started: float) -> SweepReport:
    import gradlint
    from gradlint.report._sweep import SweepReport
    from gradlint.running._run import environment

    took = time.monotonic() - started
    return SweepReport(targets, settings.seed, environment(), gradlint.__version__, took)
