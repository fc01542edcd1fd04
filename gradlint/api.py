"""The Python interface: ``gradlint.check`` and ``gradlint.sweep``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gradlint
from gradlint.base.errors import GradlintError
from gradlint.checking.sweep_measurement import sweep_op
from gradlint.inputs.lazy import with_shapes
from gradlint.inputs.needed import Lacking
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.resolve import resolve_settings
from gradlint.model.settings import Settings
from gradlint.model.sweep import SweepTarget
from gradlint.report.display import Report, SweepReport
from gradlint.rules.catalogue import rule_names
from gradlint.running.events import NoInputs, Unavailable
from gradlint.running.findings import no_inputs, unloadable
from gradlint.running.here import run_here
from gradlint.running.jobs import told_lacking
from gradlint.running.run import environment, run
from gradlint.sweeping import sweep_report, sweep_target
from gradlint.targets.build import from_object
from gradlint.trace.global_state import preserved_state


def check(
    op: Any,
    inputs: Any = None,
    *,
    devices: Sequence[str] = ("cpu",),
    dtypes: Sequence[str] | None = None,
    select: Sequence[str] | str | None = None,
    ignore: Sequence[str] | str | None = None,
    order: int = 2,
    seed: int | None = None,
    max_calls: int | None = None,
) -> Report:
    """Check whether the gradients of ``op`` are right.

    Args:
        op: a ``torch.autograd.Function`` class, callable, ``nn.Module``, or ``torch.ops`` op,
            checked in this process; or the text of a target such as ``pkg.mod:Name``, checked
            in isolated workers as on the command line.
        inputs: one tuple of arguments, a list of them, a dict name → tuple, a function of no
            arguments that returns one of these, or an expression such as ``"randn(3, 4)"``.
            None to use the op's own ``sample_inputs``, or to infer them.
        devices: "cpu", "cuda".
        dtypes: names of dtypes; None for float64, or what the op accepts.
        select: codes, prefixes or names of the rules to run; None for all.
        ignore: rules to leave out.
        order: 1 for first order only, 2 for second order too.
        seed: of every direction, cotangent and inferred value; None for a fresh one.
        max_calls: forward and backward calls that a sample may take while nothing disagrees. With a
            limit fewer pairs are judged, and the report says what power is left. None for no limit.

    Returns:
        The report: ``.ok``, ``.findings``, ``.to_dict()``; it prints itself.

    Raises:
        GradlintError: the target, the inputs or an option can't be used.
    """
    settings = resolve_settings(
        {
            "devices": _names(devices),
            "dtypes": _names(dtypes),
            "select": _names(select),
            "ignore": _names(ignore),
            "order": order,
            "seed": seed,
            "max_calls": max_calls,
            "inputs": inputs if isinstance(inputs, str) else None,
        },
        rules=rule_names(),
    )
    if isinstance(op, str):
        return _check_target(op, inputs, settings)
    return _check_object(op, inputs, settings)


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
        raise GradlintError(f"steps: a sweep needs at least 3 steps, got {steps}")
    settings = resolve_settings(
        {
            "devices": _names(devices),
            "dtypes": _names(dtypes),
            "seed": seed,
            "inputs": inputs if isinstance(inputs, str) else None,
        },
        rules=rule_names(),
    )
    if isinstance(op, str):
        if inputs is not None and not isinstance(inputs, str):
            raise TypeError("inputs of a target that is given as text must be text too")
        return sweep_target(op, settings, steps=steps, sample=sample)

    _trusted(settings)
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
    return sweep_report(swept, settings, started)


def _check_target(target: str, inputs: Any, settings: Settings) -> Report:
    if inputs is not None and not isinstance(inputs, str):
        raise TypeError(
            "inputs of a target that is given as text must be text too, such as "
            "'path/file.py:function' or 'randn(3, 4)': it is checked in another process"
        )

    return run([target], settings)


def _check_object(op: Any, inputs: Any, settings: Settings) -> Report:
    _trusted(settings)
    started = time.monotonic()
    with preserved_state():
        target = _target_report(op, inputs, settings)
    return Report(
        targets=[target],
        seed=settings.seed,
        environment=environment(),
        gradlint=gradlint.__version__,
        fail_on=settings.fail_on,
        duration_s=time.monotonic() - started,
    )


def _target_report(op: Any, inputs: Any, settings: Settings) -> TargetReport:
    loaded = from_object(op)
    given = None if isinstance(inputs, str) else inputs
    try:
        samples = samples_for(loaded, settings, given)
        with_shapes(loaded, samples, settings.seed)
        return run_here(loaded, samples, settings)
    except NoInputsFound as error:
        ref = OpRef(loaded.target, "module", loaded.target, loaded.name, loaded.kind)
        finding = no_inputs(ref, settings, NoInputs(error.attempts, error.line_to_add, error.count))
        if isinstance(error, Lacking):
            told = told_lacking(error.need)
            if isinstance(told, Unavailable):
                return TargetReport(loaded.target, loaded.kind, "skipped", notes=[told.reason])
            finding = unloadable(ref, settings, told)
        return TargetReport(loaded.target, loaded.kind, "error", findings=[finding])


def _trusted(settings: Settings) -> None:
    """Raise where the code of an object, which is here already, is not to be trusted."""
    if settings.untrusted:
        raise GradlintError(
            "an object is checked in this process, which can't be confined",
            place="untrusted",
            hint="give the text of a target, such as 'path/file.py:Name'",
        )


def _names(value: Any) -> list[str] | None:
    if value is None:
        return None
    items = [value] if isinstance(value, str) else list(value)
    return [str(item).removeprefix("torch.") for item in items]
