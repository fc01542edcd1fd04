"""Detect functions of torch and gradlint that an operator has replaced, and restore them.

An operator runs in the process that judges it. If it replaces ``torch.randn``, or removes modules
from ``sys.modules``, gradlint fails although the operator is to blame.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

#: Packages whose modules an operator has no reason to remove from ``sys.modules``.
PACKAGES = ("gradlint", "torch")

#: Modules with the functions of torch that operators call, and gradlint as well.
TORCH = (
    "torch",
    "torch.autograd",
    "torch.fft",
    "torch.linalg",
    "torch.nn.functional",
    "torch.special",
)

_ABSENT = object()


@dataclass(frozen=True)
class Replacement:
    """A function that was replaced.

    Args:
        holder: the module or class that holds it.
        name: its name there.
        original: the function before; ``_ABSENT`` if the name now hides an inherited one.
    """

    holder: Any
    name: str
    original: Any

    def __str__(self) -> str:
        """The full name of the function."""
        module = getattr(self.holder, "__module__", "")
        return ".".join(filter(None, (module, self.holder.__name__, self.name)))

    def put_back(self) -> None:
        """Restore the original, unless that has been done."""
        if self.original is _ABSENT:
            if self.name in vars(self.holder):
                delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, self.original)


class Originals:
    """The functions and classes that modules and classes held at a certain time.

    Args:
        holders: the modules and classes to remember.
    """

    def __init__(self, holders: Iterable[Any]) -> None:
        self._kept = [(holder, dict(vars(holder))) for holder in holders]

    def replaced(self) -> list[Replacement]:
        """The functions replaced or removed since, except by torch or gradlint itself (importing
        ``torch._dynamo`` wraps functions of torch)."""
        found = []
        for holder, before in self._kept:
            now = vars(holder)
            for name, original in before.items():
                value = now.get(name)
                if value is not original and callable(original) and not _is_ours(value):
                    found.append(Replacement(holder, name, original))
            if isinstance(holder, type) and len(now) > len(before):
                added = now.keys() - before.keys()
                above = super(holder, holder)
                hiding = (name for name in added if callable(getattr(above, name, None)))
                found += [Replacement(holder, name, _ABSENT) for name in hiding]
        return found

    def lost(self) -> list[ModuleType]:
        """Modules of :data:`PACKAGES` that were removed from ``sys.modules`` since."""
        return [
            holder
            for holder, _ in self._kept
            if isinstance(holder, ModuleType)
            and holder.__name__.partition(".")[0] in PACKAGES
            and sys.modules.get(holder.__name__) is not holder
        ]

    def blamed(self, error: BaseException) -> list[str]:
        """Restore what may have caused ``error``, and return its names: removed modules, and
        replaced functions that code in the traceback calls by name."""
        called = set(_names(error))
        lost = self.lost()
        for module in lost:
            sys.modules[module.__name__] = module
        names = {module.__name__ for module in lost}
        # If a whole package was removed, its name suffices.
        found = sorted(name for name in names if name.rpartition(".")[0] not in names)
        for replacement in {str(r): r for r in (*self.replaced(), *_meddled.values())}.values():
            if replacement.name in called:
                replacement.put_back()
                found.append(str(replacement))
        return found


@lru_cache(maxsize=1)
def at_the_start() -> Originals:
    """What every module that was loaded at the first call holds, and ``torch.Tensor``."""
    # A module may be registered under other names too.
    modules = [m for name, m in list(sys.modules.items()) if _named(m) == name]
    return Originals([*modules, *_tensor()])


@lru_cache(maxsize=1)
def of_torch() -> Originals:
    """What the modules of :data:`TORCH` held at the first call, and ``torch.Tensor``."""
    return Originals([*(sys.modules[name] for name in TORCH if name in sys.modules), *_tensor()])


#: Functions that the op is known to replace at every call, by name.
_meddled: dict[str, Replacement] = {}


def put_back() -> None:
    """Restore the functions that the op is known to replace."""
    for replacement in _meddled.values():
        replacement.put_back()


@contextmanager
def watched_functions() -> Iterator[list[str]]:
    """List the functions of torch that the body replaces, starting from the original ones.

    What an earlier call replaced and this one does not was replaced by the import of a library, and
    stays so. What is replaced again is restored now, and from now on by :func:`put_back`.
    """
    found: list[str] = []
    before = [(r, getattr(r.holder, r.name, None)) for r in of_torch().replaced()]
    for replacement, _ in before:
        replacement.put_back()
    try:
        yield found
    finally:
        again = {str(replacement): replacement for replacement in of_torch().replaced()}
        _meddled.update(again)
        put_back()
        for replacement, value in before:
            if str(replacement) not in again:
                setattr(replacement.holder, replacement.name, value)
        found += again


def _tensor() -> list[type]:
    torch = sys.modules.get("torch")
    return [torch.Tensor] if torch is not None else []


def _named(module: Any) -> str | None:
    return module.__name__ if type(module) is ModuleType else None


def _is_ours(value: Any) -> bool:
    """Whether a function is defined in a file of :data:`PACKAGES`."""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    file = os.path.abspath(getattr(code, "co_filename", ""))
    folders = (getattr(sys.modules.get(name), "__file__", None) for name in PACKAGES)
    return any(file.startswith(os.path.dirname(folder) + os.sep) for folder in folders if folder)


def _names(error: BaseException | None) -> Iterator[str]:
    """Names that code in the tracebacks of ``error`` and of its causes looks up."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            yield from frame.f_code.co_names
        error = error.__cause__ or error.__context__
