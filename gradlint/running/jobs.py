"""Jobs on an operator: what workers do to the user's code.

Every check waits until this module is loaded, so what few commands ask for is done by
``gradlint.running.rare_jobs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gradlint.base.errors import NotHere
from gradlint.base.text import error_line, first_line
from gradlint.checking.examine import examine as examine_rules
from gradlint.checking.examine import examine_only
from gradlint.checking.listing import list_only
from gradlint.checking.sweep_measurement import sweep_op
from gradlint.inputs.lazy import with_shapes
from gradlint.inputs.needed import Lacking, Need
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.events import Emit
from gradlint.model.op import Op, OpRef
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.numerics.seeds import ON_IMPORT, mixed
from gradlint.ops.phase import phase
from gradlint.running.confirming import confirm
from gradlint.running.events import Loaded, NoInputs, Refs, Swept, Unavailable, Unloadable
from gradlint.running.job import (
    CheckWork,
    ConfirmWork,
    ExpandWork,
    SweepWork,
    Work,
)
from gradlint.running.tool_jobs import make_importable, mistakes_sent
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
    with failures_sent(send):
        match work:
            case CheckWork(ref, settings) if work.only:
                op, samples = loaded(send, ref, settings)
                examine_only(work.only, op, samples, settings, send)
            case CheckWork(ref, settings) if work.elsewhere:
                op, samples = loaded(send, ref, settings)
                examine_rules(op, samples, settings, send, work.done, elsewhere=work.elsewhere)
            case CheckWork(ref, settings, done, examine, listing):
                op, samples = loaded(send, ref, settings)
                do = list_only if listing else examine or examine_rules
                do(op, samples, settings, send, done)
            case SweepWork(ref, settings, steps, sample):
                op, samples = loaded(send, ref, settings)
                send(Swept(sweep_op(op, samples, settings, steps, sample)))
            case ConfirmWork():
                send(confirm(work))
            case ExpandWork(ref, settings):
                with phase("import"):
                    make_importable()
                    refs = expand(ref, settings)
                send(Refs(refs))
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


def loaded(send: Emit, ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    """As :func:`load`, and say so."""
    op, samples = load(ref, settings)
    send(Loaded(op.kind, op.location))
    return op, samples


def _runs_on(op: Op, settings: Settings) -> None:
    """Raise where a spec is for other devices than are asked for and present."""
    if op.devices is not None and not set(op.devices) & set(settings.devices):
        wanted = ",".join(op.devices)
        raise NotHere(f"its spec is for {wanted} only: needs --device {wanted}, and one here")


@contextmanager
def failures_sent(send: Emit) -> Iterator[None]:
    """In the body, what the user can mend is sent instead of raised."""
    with mistakes_sent(send):
        try:
            yield
        except Lacking as error:
            send(told_lacking(error.need))
        except NoInputsFound as error:
            send(NoInputs(error.attempts, error.line_to_add, error.count))
        except LoadError as error:
            text = error_line(error.error) if error.error is not None else ""
            guessed = error.kind == "constructor"
            send(Unloadable(error.message, text, error.location, error.hint, guessed))


def told_lacking(need: Need) -> Unavailable | Unloadable:
    """What the parent is told of an op that lacks something which no arguments give: a GPU is not
    to be had here; all else can be built or installed."""
    if need.kind == "cuda":
        return Unavailable(f"needs cuda, not available here: {need.message}")
    return Unloadable(
        f"calling it {need.message}", first_line(need.error), need.location, need.hint
    )
