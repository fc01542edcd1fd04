"""Jobs on an operator that few commands ask for: specifications, scripts and audits.

What they import reads and writes specifications, and so loads pydantic and yaml: a tenth of what
the check of one operator takes. Nothing that is loaded for a check may import this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gradlint.base.errors import GradlintError, TargetError
from gradlint.model.events import Emit
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings
from gradlint.ops.phase import phase
from gradlint.overrides.audit import audit
from gradlint.recorded.calls import read_calls
from gradlint.recorded.learn import Learned, learn
from gradlint.recorded.modules import constructor_of
from gradlint.reproduction.make import script_for
from gradlint.running.events import Result
from gradlint.running.job import AuditWork, LearnWork, ReproduceWork, StarterWork, Work
from gradlint.running.jobs import failures_sent, loaded
from gradlint.running.tool_jobs import make_importable
from gradlint.spec.load import load as load_spec
from gradlint.spec.open import named_ref
from gradlint.spec.starter import dump_starter
from gradlint.targets.load import load as load_target
from gradlint.targets.load_error import LoadError
from gradlint.trace.global_state import preserved_state
from gradlint.trace.originals import of_torch


def run(work: Work[Any], send: Emit) -> None:
    """Do ``work``, sending events as they come; all that the user can mend is sent too."""
    with failures_sent(send):
        match work:
            case StarterWork(ref, settings, folder):
                op, samples = loaded(send, ref, settings)
                send(Result(dump_starter(op, samples, folder)))
            case ReproduceWork(ref, settings, wanted):
                op, samples = loaded(send, ref, settings)
                under, found = _in_module(ref, settings)
                made = script_for(op, samples, under, found, wanted, _formulas(ref, op))
                send(Result(made))
            case LearnWork():
                send(Result(dataclasses.asdict(_learned(work))))
            case AuditWork(ref, settings):
                make_importable()
                send(Result(audit(ref, settings)))
            case _:
                raise TypeError(f"no job for {type(work).__name__}")


def _in_module(ref: OpRef, settings: Settings) -> tuple[Settings, OpRef]:
    """Under which settings, and as what, the operator of ``ref`` is found without its spec; as it
    is where there is none, or the spec makes the operator itself."""
    found, under = named_ref(ref, settings) or (ref, settings)
    return under, found


def _formulas(ref: OpRef, op: Op) -> dict[str, Any] | None:
    """The formulas of a specification that makes the operator; None for another operator."""
    if ref.source != "spec" or op.kind != "formula":
        return None
    spec = load_spec(ref.path)
    return {
        "inputs": list(spec.inputs),
        "let": dict(spec.let),
        "forward": spec.forward,
        "backward": None if spec.backward is None else dict(spec.backward),
        "once": spec.once_differentiable,
    }


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
