"""Operators registered with torch: ``torch.ops.ns.name`` and ``torch.library.custom_op``."""

from __future__ import annotations

import inspect
import keyword
from inspect import Parameter, Signature
from typing import Any, Optional

import torch

from gradlint.base.errors import TargetError
from gradlint.base.text import nearest
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings
from gradlint.native.reference import load_reference
from gradlint.targets._missing import suggest
from gradlint.targets.load_error import attempt

#: Namespace of the reference operators, which are built on demand.
_OWN = "gradlint"

_IMPORT = "If a module registers it, name that module with --import."


def load_library(path: str, settings: Settings) -> Op:
    """The op ``torch.ops.ns.name`` (or one overload of it).

    gradlint's own reference operators need no import: they are built and loaded.

    Raises:
        TargetError: nothing of that name is registered.
        BuildError: it is one of gradlint's own operators, which can't be built here.
    """
    _, _, namespace, name, *overload = path.split(".")
    _provide(namespace, settings)
    packet = _get(getattr(torch.ops, namespace), name)
    if packet is None:
        near = [f"torch.ops.{op}" for op in _like(namespace, name)]
        other = not any(op.startswith(f"torch.ops.{namespace}.") for op in near)
        hint = " ".join(filter(None, [suggest(near), _IMPORT if other else ""]))
        raise TargetError(f"no op `{path}` is registered", hint=hint)
    found = packet
    if overload:
        names = packet.overloads()
        if overload[0] not in names:
            near = nearest(overload[0], names, limit=3) or names[:3]
            raise TargetError(
                f"`torch.ops.{namespace}.{name}` has no overload `{overload[0]}`",
                hint=suggest(f"torch.ops.{namespace}.{name}.{other}" for other in near),
            )
        found = getattr(packet, overload[0])
    op = library_op(found)
    op.target = path
    return op


def is_library_op(thing: Any) -> bool:
    """Whether ``thing`` is a registered op, an overload of one, or made by ``custom_op``."""
    if isinstance(thing, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return True
    return type(thing).__name__ == "CustomOpDef" and hasattr(thing, "_opoverload")


def written_function(thing: Any) -> Any:
    """The function that ``custom_op`` or ``triton_op`` was given, None for other operators."""
    found: Any = getattr(thing, "_init_fn", None)
    if getattr(found, "__module__", None) == "torch._library.triton":  # triton_op wraps it
        cells = zip(found.__code__.co_freevars, found.__closure__ or (), strict=True)
        found = {name: cell.cell_contents for name, cell in cells}.get("fn", found)
    return found


def library_op(thing: Any, name: str | None = None) -> Op:
    """The operator behind an OpOverload, an OpOverloadPacket or a ``custom_op``."""
    written = written_function(thing)
    schema_of = getattr(thing, "_opoverload", thing)
    if isinstance(schema_of, torch._ops.OpOverloadPacket):
        schema_of = _main_overload(schema_of)
    schema = schema_of._schema
    space, _, plain = schema.name.partition("::")
    target = f"torch.ops.{space}.{plain}"
    if isinstance(thing, torch._ops.OpOverload) and schema.overload_name:
        target += f".{schema.overload_name}"
    return Op(
        name or plain, target, "library", thing, signature_of_schema(schema), defining=written
    )


def _main_overload(packet: Any) -> Any:
    """The overload whose parameters represent the op: the default one if it takes tensors (that of
    ``aten.add`` takes plain numbers), else the one with the most tensors."""
    overloads = [getattr(packet, name) for name in packet.overloads()]

    def rank(overload: Any) -> tuple[bool, bool, int, int]:
        arguments = overload._schema.arguments
        outputs = sum(argument.is_out for argument in arguments)
        tensors = sum(str(argument.type) == "Tensor" for argument in arguments)
        return tensors > 0, overload._overloadname == "default", -outputs, tensors

    return max(overloads, key=rank)


def signature_of_schema(schema: Any) -> Signature:
    """Parameters of a function schema, with Python annotations for the types that have one."""
    parameters = []
    optional = False
    for argument in schema.arguments:
        kind = Parameter.KEYWORD_ONLY if argument.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default_value() else Parameter.empty
        if kind is Parameter.POSITIONAL_OR_KEYWORD:
            if default is Parameter.empty and optional:
                # Schemas allow a required argument after an optional one, Python does not.
                kind = Parameter.KEYWORD_ONLY
            optional = optional or default is not Parameter.empty
        parameters.append(
            Parameter(
                _parameter_name(argument.name),
                kind,
                default=default,
                annotation=_annotation(str(argument.type)),
            )
        )
    parameters.sort(key=lambda parameter: parameter.kind)
    try:
        return Signature(parameters)
    except ValueError:
        return inspect.signature(lambda *args, **kwargs: None)


def _parameter_name(name: str) -> str:
    # aten::uniform has an argument called ``from``.
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"{name}_"


def _provide(namespace: str, settings: Settings) -> None:
    """Build and load gradlint's own operators when one of them is named."""
    if namespace == _OWN:
        load_reference(settings.devices if "cuda" in settings.devices else None)


def expand_namespace(ref: OpRef, settings: Settings) -> list[OpRef]:
    """Every op registered under ``torch.ops.ns``."""
    namespace = ref.path.split(".")[2]
    _provide(namespace, settings)
    names = sorted(op for op in _registered() if op.startswith(f"{namespace}."))
    if not names:
        near = nearest(namespace, {op.partition(".")[0] for op in _registered()}, limit=3)
        raise TargetError(
            f"no ops are registered under `{ref.path}`",
            hint=suggest((f"torch.ops.{other}" for other in near), _IMPORT),
        )
    return [
        OpRef(f"torch.ops.{name}", "library", f"torch.ops.{name}", "", "library", explicit=False)
        for name in names
    ]


def _get(namespace: Any, name: str) -> Any:
    try:
        return attempt(f"looking up `{name}`", lambda: getattr(namespace, name))
    except Exception:
        return None


def _registered() -> set[str]:
    """Every registered op as ``ns.name``, without overloads."""
    names = torch._C._dispatch_get_all_op_names()
    return {name.partition(".")[0].replace("::", ".") for name in names}


def _like(namespace: str, name: str) -> list[str]:
    registered = _registered()
    same = {op.partition(".")[2]: op for op in registered if op.startswith(f"{namespace}.")}
    found = [same[other] for other in nearest(name, same, limit=3)]
    elsewhere = [op for op in registered if op.partition(".")[2] == name]
    # Where the whole namespace is missing, similar names elsewhere would mislead.
    spaces = {op.partition(".")[0] for op in registered}
    alike = [] if namespace in spaces else nearest(namespace, spaces, limit=3)
    elsewhere += [f"{space}.{name}" for space in alike if f"{space}.{name}" in registered]
    return (found or sorted(set(elsewhere)))[:3]


def _annotation(text: str) -> Any:
    """The Python type of a schema type such as ``Optional[List[int]]``, or its text."""
    plain: dict[str, Any] = {
        "Tensor": torch.Tensor,
        "int": int,
        "SymInt": int,
        "float": float,
        "bool": bool,
        "str": str,
        "number": float,
        "complex": complex,
    }
    for opening in ("Optional[", "List["):
        if text.startswith(opening) and text.endswith("]"):
            inner = _annotation(text[len(opening) : -1])
            generic: Any = Optional if opening == "Optional[" else list
            return text if isinstance(inner, str) else generic[inner]
    return plain.get(text, text)
