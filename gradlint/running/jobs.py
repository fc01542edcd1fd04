"""Jobs on an operator: what workers do to the user's code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gradlint.base.errors import GradlintError, NotHere, TargetError
from gradlint.base.text import error_line
from gradlint.checking.examine import examine as examine_rules
from gradlint.checking.examine import examine_only
from gradlint.checking.listing import list_only
from gradlint.checking.sweep_measurement import sweep_op
from gradlint.inputs.lazy import with_shapes
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.events import Emit
from gradlint.model.op import Op, OpRef
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.numerics.seeds import ON_IMPORT, mixed
from gradlint.ops.phase import phase
from gradlint.overrides.audit import audit
from gradlint.recorded.calls import read_calls
from gradlint.recorded.learn import Learned, learn
from gradlint.recorded.modules import constructor_of
from gradlint.reproduction.make import script_for
from gradlint.running.confirming import confirm
from gradlint.running.events import Loaded, NoInputs, Refs, Result, Swept, Unloadable
from gradlint.running.job import (
    AuditWork,
    CheckWork,
    ConfirmWork,
    ExpandWork,
    LearnWork,
    ReproduceWork,
    StarterWork,
    SweepWork,
    Work,
)
from gradlint.running.tool_jobs import make_importable, mistakes_sent
from gradlint.spec.starter import dump_starter
from gradlint.targets.load import expand
from gradlint.targets.load import load as load_target
from gradlint.targets.load_error import LoadError
from gradlint.targets.overlay import enter as enter_overlay
from gradlint.trace.global_state import preserved_state
from gradlint.trace.originals import of_torch
from gradlint.trace.random import start_from

#: Reads specs, and is imported by the workers that are given one: a single operator need not wait
#: for pydantic.
_SPECS = "gradlint.spec.open"


def run(work: Work[Any], send: Emit) -> None:
    """Do ``work``, sending events as they come; all that the user can mend is sent too."""
    with _failures_sent(send):
        match work:
            case CheckWork(ref, settings) if work.only:
                op, samples = _loaded(send, ref, settings)
                examine_only(work.only, op, samples, settings, send)
            case CheckWork(ref, settings) if work.elsewhere:
                op, samples = _loaded(send, ref, settings)
                examine_rules(op, samples, settings, send, work.done, elsewhere=work.elsewhere)
            case CheckWork(ref, settings, done, examine, listing):
                op, samples = _loaded(send, ref, settings)
                do = list_only if listing else examine or examine_rules
                do(op, samples, settings, send, done)
            case SweepWork(ref, settings, steps, sample):
                op, samples = _loaded(send, ref, settings)
                send(Swept(sweep_op(op, samples, settings, steps, sample)))
            case StarterWork(ref, settings, folder):
                op, samples = _loaded(send, ref, settings)
                send(Result(dump_starter(op, samples, folder)))
            case ReproduceWork(ref, settings, wanted):
                op, samples = _loaded(send, ref, settings)
                send(Result(script_for(op, samples, settings, ref, wanted)))
            case ConfirmWork():
                send(confirm(work))
            case ExpandWork(ref, settings):
                with phase("import"):
                    make_importable()
                    refs = expand(ref, settings)
                send(Refs(refs))
            case LearnWork():
                send(Result(dataclasses.asdict(_learned(work))))
            case AuditWork(ref, settings):
                make_importable()
                send(Result(audit(ref, settings)))
            case _:
                raise TypeError(f"no job for {type(work).__name__}")


def load(ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    """The op behind ``ref`` and its samples; phases are marked, errors come out as they are."""
    samples: list[Sample] = []
    # What is drawn on import (parameters of a module made there) is the same again under --seed.
    start_from(mixed(settings.seed, ON_IMPORT))
    # Before modules of the user's can be in the way of those that it imports.
    specs: Any = import_module(_SPECS) if ref.source == "spec" else None
    with phase("import"):
        make_importable()
        if ref.overlay is not None:
            enter_overlay(ref.overlay)
        if ref.source == "spec":
            op, samples = specs.open_spec(ref, settings)
            _runs_on(op, settings)
        else:
            op = load_target(ref, settings)
    of_torch()  # as the module's import left it
    if settings.inputs is not None or not samples:
        with phase("inputs"), preserved_state():
            samples = samples_for(op, settings)
    with phase("inputs"), preserved_state():
        with_shapes(op, samples, settings.seed)
    return op, samples


def _learned(work: LearnWork) -> Learned:
    """The specification of an operator from its calls."""
    settings = work.settings
    with phase("import"):
        make_importable()
        constructor, _, _ = constructor_of(read_calls(work.files))
        settings = _providing(work, constructor)
        op = load_target(work.ref, settings, constructor)
    of_torch()
    with phase("inputs"), preserved_state():
        return learn(op, work.files, settings, work.folder, work.header, shrink=work.shrink)


def _providing(work: LearnWork, constructor: Mapping[str, Any] | None) -> Settings:
    """The settings with the module that registers the operator, found by trying."""
    settings = work.settings
    error: GradlintError | None = None
    for provider in ("", *work.providers):
        tried = dataclasses.replace(
            settings, imports=(*settings.imports, *([provider] if provider else []))
        )
        try:
            load_target(work.ref, tried, constructor)
            return tried
        except (TargetError, LoadError) as problem:
            error = error or (problem if isinstance(problem, TargetError) else None)
            if not work.providers:
                raise
    assert error is not None
    raise error


def _loaded(send: Emit, ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    op, samples = load(ref, settings)
    send(Loaded(op.kind, op.location))
    return op, samples


def _runs_on(op: Op, settings: Settings) -> None:
    """Raise where a spec is for other devices than are asked for and present."""
    if op.devices is not None and not set(op.devices) & set(settings.devices):
        wanted = ",".join(op.devices)
        raise NotHere(f"its spec is for {wanted} only: needs --device {wanted}, and one here")


@contextmanager
def _failures_sent(send: Emit) -> Iterator[None]:
    with mistakes_sent(send):
        try:
            yield
        except NoInputsFound as error:
            send(NoInputs(error.attempts, error.line_to_add, error.count))
        except LoadError as error:
            text = error_line(error.error) if error.error is not None else ""
            guessed = error.kind == "constructor"
            send(Unloadable(error.message, text, error.location, error.hint, guessed))
