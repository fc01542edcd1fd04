"""From the name a user typed to operators.

``resolve`` runs in the process that reports: it reads source, imports neither torch nor the
user's code. ``expand``, ``load`` and ``from_object`` run in workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint.targets._load_error import LoadError
from gradlint.targets._op import KINDS, Intent, Op, OpRef
from gradlint.targets._resolve import EVERY, resolve

if TYPE_CHECKING:
    from gradlint.targets._build import from_object
    from gradlint.targets._calls import Hint, call_hints
    from gradlint.targets._load import expand, load

__all__ = [
    "EVERY",
    "KINDS",
    "Hint",
    "Intent",
    "LoadError",
    "Op",
    "OpRef",
    "call_hints",
    "expand",
    "from_object",
    "load",
    "resolve",
]

_LATE = {
    "Hint": "_calls",
    "call_hints": "_calls",
    "expand": "_load",
    "from_object": "_build",
    "load": "_load",
}


def __getattr__(name: str) -> Any:
    # What only workers need is loaded when they ask for it.
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
