"""Which ``return`` of a function was executed: for functions with several, the one to point at."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

_NAMES = ("backward", "vjp")


@dataclass
class Seen:
    """``line``: line of the last ``return`` that the watched function executed, or None."""

    line: int | None = None


@contextmanager
def executed_return(function: Any) -> Iterator[Seen]:
    """Watch this thread for the ``return`` of ``function``, looked at through its decorators."""
    seen = Seen()
    code = innermost_code(function)
    if code is None:
        yield seen
        return

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is code:
            seen.line = frame.f_lineno

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(before)


def innermost_code(function: Any) -> CodeType | None:
    """Code object of the user's function under ``functools.wraps``, partials and plain wrappers.

    A wrapper without ``__wrapped__`` is looked through when its closure holds a function of the
    name that backwards have, or no other function at all.
    """
    visited: set[int] = set()
    code: CodeType | None = None
    current: Any = function
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        if isinstance(current, functools.partial):
            current = current.func
            continue
        found = getattr(current, "__code__", None)
        if isinstance(found, CodeType):
            code = found
        current = (
            getattr(current, "__wrapped__", None)
            or getattr(current, "__func__", None)
            or _enclosed(current)
        )
    return code


def _enclosed(function: Any) -> Callable[..., Any] | None:
    held = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    for content in held:
        if callable(content) and getattr(content, "__name__", "") in _NAMES:
            return content
        registered = getattr(content, "_backward_fn", None)  # torch.library's registration
        if callable(registered):
            return registered
    functions = [content for content in held if isinstance(content, FunctionType)]
    wrapper = getattr(function, "__name__", "") not in _NAMES
    return functions[0] if wrapper and len(functions) == 1 else None
