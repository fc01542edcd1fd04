"""From a spec file to an op and its samples; runs in a worker, where user code may be loaded."""

from __future__ import annotations

import dataclasses
import os
import re

from gradlint.base.errors import SpecError, TargetError
from gradlint.model.op import Op, OpRef
from gradlint.model.report import Location
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.spec._extension import function_op, open_extension
from gradlint.spec._formula import Program, function_class, plain_callable, reference_callable
from gradlint.spec._model import OpSpec
from gradlint.spec._samples import constructor_arguments, make_samples
from gradlint.spec._yaml import Document, Path
from gradlint.spec.load import load
from gradlint.targets.load import expand
from gradlint.targets.load import load as load_target
from gradlint.targets.resolve import resolve


def open_spec(ref: OpRef, settings: Settings) -> tuple[Op, list[Sample]]:
    """The op that the spec ``ref.path`` describes, and its samples.

    The samples are empty where the spec gives no inputs, which are then inferred.

    Raises:
        SpecError: the spec is wrong, names an op that does not exist, or an extension that can't
            be built.
        LoadError: the op's module can't be imported (from ``gradlint.targets``).
        NotHere: its extension needs CUDA, which is absent.
    """
    spec = load(ref.path)
    document = spec.places
    op = _formula(spec, document, ref) if spec.op is None else _loaded(spec, document, settings)
    op.target = ref.target
    op.name = spec.name or op.name
    op.intent = dataclasses.replace(
        op.intent,
        surrogate=dict(spec.surrogate) if spec.surrogate else op.intent.surrogate,
        once_differentiable=spec.once_differentiable or op.intent.once_differentiable,
        stochastic=op.intent.stochastic if spec.stochastic is None else spec.stochastic,
    )
    op.ignores = {**op.ignores, **{item.code: item.reason for item in spec.ignore}}
    op.dtypes = tuple(spec.dtypes) if spec.dtypes else None
    op.devices = tuple(spec.devices) if spec.devices else None
    op.order = spec.order
    return op, _samples(spec, document, op, settings)


def named_ref(ref: OpRef, settings: Settings) -> tuple[OpRef, Settings] | None:
    """The one operator that ``ref`` stands for, with the settings under which it is loaded: itself
    unless it is a spec. None where that holds formulas, builds an extension, or names a module
    that only importing can list. Imports nothing of the user's.

    Raises:
        SpecError, TargetError: the spec is wrong, or names nothing.
    """
    if ref.source != "spec":
        return ref, settings
    spec = load(ref.path)
    if spec.op is None or spec.extension is not None:
        return None
    settings = dataclasses.replace(settings, imports=(*settings.imports, *spec.import_))
    refs = resolve(_beside(spec.path, spec.op), settings)
    if len(refs) != 1 or refs[0].attribute == "*":
        return None
    return refs[0], settings


def _samples(spec: OpSpec, document: Document, op: Op, settings: Settings) -> list[Sample]:
    seed = settings.seed if spec.seed is None else spec.seed
    by_name = op.kind not in ("function", "formula")
    return make_samples(spec, document, seed, op.signature, by_name=by_name)


def _formula(spec: OpSpec, document: Document, ref: OpRef) -> Op:
    program = Program(spec)
    name = spec.name or os.path.basename(ref.path).rsplit(".", 1)[0]
    location = _location(document, ref.path, ("forward",))
    op = Op(name, ref.target, "formula", lambda: None, program.signature(), location=location)
    if spec.backward is None:
        op.call = plain_callable(program, _identifier(name))
    else:
        op.function = function_class(
            program, _identifier(name), once_differentiable=spec.once_differentiable
        )
        # Source lookups find the formulas here: the class itself has no source of its own.
        op.function.gradlint_places = {  # type: ignore[attr-defined]
            "forward": location,
            "backward": _location(document, ref.path, ("backward",)),
            **{
                position: _location(document, ref.path, ("backward", name))
                for position, name in enumerate(spec.inputs)
                if name in spec.backward
            },
        }
        op.call = op.function.apply
    if spec.reference is not None:
        op.reference = reference_callable(program, op.signature)
    return op


def _loaded(spec: OpSpec, document: Document, settings: Settings) -> Op:
    assert spec.op is not None
    settings = dataclasses.replace(settings, imports=(*settings.imports, *spec.import_))
    if spec.extension is None:
        return _with_reference(_named(spec.op, spec, document, settings), spec)
    opened = open_extension(spec, document, settings)
    attribute = opened.attribute(spec.op)
    if attribute is None:
        op = _named(spec.op, spec, document, settings)
    else:
        op = function_op(opened, attribute, spec, document)
    op.notes += opened.notes
    op.sources = opened.sources
    return _with_reference(op, spec)


def _named(target: str, spec: OpSpec, document: Document, settings: Settings) -> Op:
    """The one op that ``target`` names."""
    constructor = constructor_arguments(spec, document)
    try:
        refs = resolve(_beside(spec.path, target), settings)
        if any(ref.attribute == "*" for ref in refs):
            refs = [
                found
                for ref in refs
                for found in (expand(ref, settings) if ref.attribute == "*" else [ref])
            ]
        if len(refs) != 1 or refs[0].source == "spec":
            names = ", ".join(ref.target for ref in refs[:8])
            raise TargetError(
                f"`{target}` names {len(refs)} operators, but a spec describes one",
                hint=f"one of {names}" if len(refs) > 1 else "name one, as in pkg.mod:Name",
            )
        return load_target(refs[0], settings, constructor)
    except TargetError as error:
        document.problem(document.value(("op",)), error.message, error.hint)
        raise SpecError(document.path, document.problems) from None


def _with_reference(op: Op, spec: OpSpec) -> Op:
    if spec.reference is not None:
        op.reference = reference_callable(Program(spec), op.signature)
    return op


def _beside(spec_path: str, target: str) -> str:
    """``target`` with its file looked up next to the spec, if there is one."""
    matched = re.match(r"^(?P<file>[^:]+\.py)(?P<rest>:.*)?$", target)
    if matched is None:
        return target
    beside = os.path.join(os.path.dirname(spec_path), matched["file"])
    return f"{beside}{matched['rest'] or ''}" if os.path.isfile(beside) else target


def _location(document: Document, path: str, place: Path) -> Location:
    start, end = document.inside(place, 0), document.end(place)
    return Location(path, start.line, start.column, end.line, end.column)


def _identifier(name: str) -> str:
    made = re.sub(r"\W", "_", name)
    return made if made[:1].isalpha() else f"Op_{made}"
