"""The Python interface and the runs of ``gradlint sweep``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradlint.api import _names
from gradlint.base.errors import GradlintError
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings, resolve_settings
from gradlint.model.sweep import SweepReport, SweepTarget
from gradlint.ops.phase import phase
from gradlint.running import server
from gradlint.running.call import WorkerFailed, call_in_worker, call_on_target
from gradlint.running.run import environment
from gradlint.targets.resolve import EVERY, resolve

if TYPE_CHECKING:
    from gradlint.model.sample import Sample


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
    from gradlint.inputs.lazy import with_shapes
    from gradlint.inputs.not_found import NoInputsFound
    from gradlint.inputs.samples import samples_for
    from gradlint.targets.build import from_object
    from gradlint.trace.global_state import preserved_state

    started = time.monotonic()
    loaded = from_object(op)
    given = None if isinstance(inputs, str) else inputs
    with preserved_state():
        try:
            samples = samples_for(loaded, settings, given)
            with_shapes(loaded, samples, settings.seed)
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
    started = time.monotonic()
    server.start()
    refs: list[OpRef] = []
    for ref in resolve(target, settings):
        if ref.attribute == EVERY:
            refs += call_in_worker(
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
    from gradlint.checking.examine import expand_samples

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
    from gradlint.checking.sweep_measurement import empty_input, sweep_one
    from gradlint.experiments.differentiable_maps import first_order
    from gradlint.trace.op_io import OpRaised
    from gradlint.trace.problem import Problem

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
        target.error = _told(raised)
    return target


def _told(raised: Any) -> str:
    from gradlint.model.sample import short_text

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
    try:
        found: list[SweepTarget] = call_on_target(
            "gradlint.sweeping:sweep_op", ref, settings, steps, sample
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

    took = time.monotonic() - started
    return SweepReport(targets, settings.seed, environment(), gradlint.__version__, took)
