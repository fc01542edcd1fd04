"""Compares the parameters of a handler with those of the torch function that it replaces."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

#: Arguments that few callers give: a handler without them gets a remark only.
_RARE = ("out", "dtype", "layout", "device", "requires_grad", "memory_format", "generator")

_VARIADIC = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def signature_findings(
    handler: Callable[..., Any], testing: Callable[..., Any] | None
) -> list[dict[str, str]]:
    """How calls that torch's function takes fail on ``handler``.

    Args:
        handler: what the class registered.
        testing: torch's dummy of the function, which has its signature (``torch.overrides``).
    """
    mine, theirs = _parameters(handler), _parameters(testing)
    if mine is None or theirs is None or isinstance(handler, type):
        return []
    kinds = {p.kind for p in (*mine, *theirs)}
    positional = [p.name for p in mine if p.kind in _POSITIONAL]
    expected = [p.name for p in theirs if p.kind in _POSITIONAL]
    names = {p.name for p in mine}
    wanted = [
        p.name for p in theirs if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    ]
    found = []
    renamed = [
        (a, b)
        for a, b in zip(positional, expected, strict=False)
        if a != b and a not in wanted and b not in names
    ]
    for a, b in renamed:
        found.append(_finding("renamed-parameter", "info", f"`{b}` is called `{a}`"))
    moved = [
        b
        for a, b in zip(positional, expected, strict=False)
        if a != b and (a in wanted or b in names)
    ]
    if moved:
        text = f"positional arguments are in a different order, from `{moved[0]}` on"
        found.append(_finding("reordered-parameters", "error", text))
    if Parameter.VAR_KEYWORD not in {p.kind for p in mine}:
        known = names | {b for _, b in renamed}
        missing = [name for name in wanted if name not in known]
        common = [name for name in missing if name not in _RARE]
        if missing:
            names_shown = ", ".join(f"`{name}`" for name in missing)
            severity = "warning" if common else "info"
            found.append(_finding("missing-parameter", severity, f"does not take {names_shown}"))
    if Parameter.VAR_POSITIONAL not in kinds:
        extra = [
            p.name
            for p in mine
            if p.default is Parameter.empty
            and p.kind not in _VARIADIC
            and p.name not in wanted
            and p.name not in [a for a, _ in renamed]
        ]
        if extra:
            names_shown = ", ".join(f"`{name}`" for name in extra)
            found.append(
                _finding(
                    "extra-parameter",
                    "error",
                    f"requires {names_shown}, which torch's function does not have",
                )
            )
    return found


def required(testing: Callable[..., Any] | None) -> list[str] | None:
    """Names of the parameters without default of torch's function; None where unknown."""
    theirs = _parameters(testing)
    if theirs is None:
        return None
    return [p.name for p in theirs if p.default is Parameter.empty and p.kind not in _VARIADIC]


def _finding(kind: str, severity: str, message: str) -> dict[str, str]:
    return {"kind": kind, "severity": severity, "message": message}


def _parameters(function: Any) -> list[Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
