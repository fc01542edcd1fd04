"""What workers do: functions called with ``send(kind, payload)`` and the job's arguments.

They send, beside the events of ``gradlint.rules.examine``:

``loaded``      what is known of the op once its module is imported
``unloadable``  the module can't be imported: message, error, location (becomes GL001)
``no_inputs``   nothing that was tried ran: ``NoInputsFound.payload`` (becomes GL002)
``building``    how far an extension is that is compiled now
``not_here``    the op can't run on this machine, and why
``usage``       the user's command or spec is wrong: class, message, place, hint
``refs``        the operators of a module that had to be imported to list them
``result``      what a called function returned
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradlint.base.errors import GradlintError, NotHere
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings
from gradlint.native.progress import reporting
from gradlint.numerics.seeds import ON_IMPORT, mixed
from gradlint.ops.phase import phase
from gradlint.trace.originals import of_torch

if TYPE_CHECKING:
    from gradlint.model.sample import Sample

Send = Callable[[str, Any], None]


def check(
    send: Send,
    ref: OpRef,
    settings: Settings,
    done: frozenset[tuple[str, str]],
    examine: str,
) -> None:
    """Load ``ref``, find its inputs, and run the rules that are not ``done``.

    Args:
        examine: dotted path of the function that runs the rules.
    """
    with _told(send):
        op, samples = _prepare(send, ref, settings)
        locate(examine)(op, samples, settings, send, done)


def expand(send: Send, ref: OpRef, settings: Settings) -> None:
    """Import the module of ``ref`` and list its operators."""
    from gradlint.targets.load import expand as expand_target

    with _told(send), phase("import"):
        _importable_here()
        send("refs", expand_target(ref, settings))


def on_target(
    send: Send, function: str, ref: OpRef, settings: Settings, arguments: tuple[Any, ...]
) -> None:
    """Load ``ref``, find its inputs, and send ``function(op, samples, settings, *arguments)``."""
    with _told(send):
        op, samples = _prepare(send, ref, settings)
        send("result", locate(function)(op, samples, settings, *arguments))


def starter(op: Op, samples: list[Sample], settings: Settings) -> str:
    """The text of a specification that says what was inferred for ``op``."""
    from gradlint.spec.starter import dump_starter

    text: str = dump_starter(op, samples)
    return text


def call(send: Send, function: str, arguments: tuple[Any, ...]) -> None:
    """Call ``function`` and send what it returns."""
    with _told(send):
        _importable_here()
        send("result", locate(function)(*arguments))


def devices() -> dict[str, bool]:
    """Which kinds of device work here."""
    import torch

    return {"cpu": True, "cuda": torch.cuda.is_available()}


def locate(path: str) -> Callable[..., Any]:
    """The function that ``package.module:name`` names."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def load(ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    """The op behind ``ref`` and its samples; phases are marked, errors come out as they are."""
    from gradlint.inputs.lazy import with_shapes
    from gradlint.inputs.samples import samples_for
    from gradlint.targets.load import load as load_target
    from gradlint.trace.random import start_from

    samples: list[Sample] = []
    # What is drawn on import (parameters of a module made there) is the same again under --seed.
    start_from(mixed(settings.seed, ON_IMPORT))
    with phase("import"):
        _importable_here()
        if ref.source == "spec":
            from gradlint.spec.open import open_spec

            op, samples = open_spec(ref, settings)
            _runs_on(op, settings)
        else:
            op = load_target(ref, settings)
    of_torch()  # as the module's import left it
    from gradlint.trace.global_state import preserved_state

    if settings.inputs is not None or not samples:
        with phase("inputs"), preserved_state():
            samples = samples_for(op, settings)
    with phase("inputs"), preserved_state():
        with_shapes(op, samples, settings.seed)
    return op, samples


def _runs_on(op: Op, settings: Settings) -> None:
    """Raise where a spec is for other devices than are asked for and present."""
    if op.devices is not None and not set(op.devices) & set(settings.devices):
        wanted = ",".join(op.devices)
        raise NotHere(f"its spec is for {wanted} only: needs --device {wanted}, and one here")


def _prepare(send: Send, ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    op, samples = load(ref, settings)
    send("loaded", {"kind": op.kind, "location": op.location})
    return op, samples


@contextmanager
def _told(send: Send) -> Iterator[None]:
    from gradlint.inputs.not_found import NoInputsFound
    from gradlint.targets.load_error import LoadError

    try:
        # What is said while something is compiled also shows that the worker does not hang.
        with reporting(lambda progress: send("building", progress)):
            yield
    except NotHere as error:
        send("not_here", str(error))
    except NoInputsFound as error:
        send("no_inputs", error.payload())
    except GradlintError as error:
        send(
            "usage",
            {
                "class": type(error).__name__,
                "message": error.message,
                "place": error.place,
                "hint": error.hint,
            },
        )
    except LoadError as error:
        send(
            "unloadable",
            {
                "message": error.message,
                "error": _described(error.error),
                "location": error.location,
                "hint": error.hint,
            },
        )


def _described(error: BaseException | None) -> str:
    from gradlint.targets.load_error import described

    return described(error) if error is not None else ""


def _importable_here() -> None:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
