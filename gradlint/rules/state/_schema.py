"""Arguments that a registered operator declares to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlint.targets import Op


def written_arguments(op: Op) -> set[str]:
    """Names of the arguments that the schema of a library op marks as written: ``Tensor(a!) x``."""
    if op.kind != "library":
        return set()
    call: Any = getattr(op.call, "_opoverload", op.call)
    names = call.overloads() if hasattr(call, "overloads") else None
    overloads = [call] if names is None else [getattr(call, name) for name in names]
    return {
        argument.name
        for overload in overloads
        if hasattr(overload, "_schema")
        for argument in overload._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }
