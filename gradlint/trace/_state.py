"""Global state that an operator may change, kept as it was for whatever runs next."""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.trace._originals import put_back
from gradlint.trace._settings import SETTINGS, Setting, decoded


@dataclass
class Changes:
    """What the body changed, in words such as ``default dtype: torch.float32 → torch.float64``.

    Random number generators are put back too, but drawing from them is no change.
    """

    texts: list[str] = field(default_factory=list)


@contextmanager
def preserved_state() -> Iterator[Changes]:
    """Put global state back after the body, however it ends, and say what it had changed.

    Kept are torch's defaults, modes and thread count, every random number generator of the CPU,
    the working directory, the environment, ``sys.path``, warning filters, the standard streams
    and their descriptors.
    """
    changes = Changes()
    before = [(setting, _read(setting)) for setting in SETTINGS]
    generators, filters = _generators(), list(warnings.filters)
    streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    descriptors = {fd: _duplicate(fd) for fd in (1, 2)}
    try:
        yield changes
    finally:
        put_back()
        for fd, copy in descriptors.items():
            if _put_back(fd, copy):
                changes.texts.append(f"descriptor {fd} was closed or replaced")
        for name, stream in streams.items():
            _restore_stream(name, stream, changes)
        for setting, value in before:
            _restore(setting, value, changes)
        # Putting back the others may warn, which is switched off for as long as that takes.
        if warnings.filters != filters:
            changes.texts.append("warning filters changed")
            warnings.filters[:] = filters  # type: ignore[index]
        _restore_generators(generators)


_UNREADABLE = object()


def _read(setting: Setting) -> Any:
    try:
        return setting.read()
    except Exception:
        return _UNREADABLE


def _restore(setting: Setting, value: Any, changes: Changes) -> None:
    now = _read(setting)
    if value is _UNREADABLE or now == value:
        return
    if (difference := _difference(setting, value, now)) is not None:
        changes.texts.append(f"{setting.name}{difference}")
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        setting.restore(value)


def _difference(setting: Setting, before: Any, now: Any) -> str | None:
    if isinstance(before, dict) and isinstance(now, dict):
        names = {decoded(k) for k in before.keys() | now.keys() if before.get(k) != now.get(k)}
        # torch sets variables of its own when parts of it are first used.
        names = {name for name in names if not name.startswith("TORCH")}
        return ": " + ", ".join(sorted(names)) if names else None
    if isinstance(before, list):
        return " changed"
    return f": {setting.shown(before)} → {setting.shown(now)}"


def _generators() -> tuple[Any, Any, Any]:
    numpy = sys.modules.get("numpy")
    legacy = numpy.random.get_state() if numpy is not None else None
    return torch.get_rng_state(), random.getstate(), legacy


def _restore_generators(states: tuple[Any, Any, Any]) -> None:
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    numpy = sys.modules.get("numpy")
    if numpy is not None and states[2] is not None:
        numpy.random.set_state(states[2])


def _restore_stream(name: str, stream: Any, changes: Changes) -> None:
    now = getattr(sys, name, None)
    closed = bool(getattr(stream, "closed", False))
    if now is stream and not closed:
        return
    changes.texts.append(f"sys.{name} was closed" if closed else f"sys.{name} was replaced")
    if not closed:
        setattr(sys, name, stream)
        return
    fd = {"stdin": 0, "stdout": 1, "stderr": 2}[name]
    mode = "r" if name == "stdin" else "w"
    with suppress(OSError):
        fresh = open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, fresh)


def _duplicate(fd: int) -> int | None:
    try:
        return os.dup(fd)
    except OSError:
        return None


def _put_back(fd: int, copy: int | None) -> bool:
    """Make ``fd`` what ``copy`` is, and close ``copy``; True if it had become another."""
    if copy is None:
        return False
    try:
        changed = not os.path.sameopenfile(fd, copy)
    except OSError:
        changed = True
    with suppress(OSError):
        if changed:
            os.dup2(copy, fd)
    with suppress(OSError):
        os.close(copy)
    return changed
