"""Errors of loading the user's code in a worker: one line each, with the place in the source."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import TypeVar

from gradlint.base.errors import GradlintError
from gradlint.base.text import error_line, first_line
from gradlint.model.report import Location
from gradlint.targets.source_file import read_source, shown_path

_T = TypeVar("_T")

#: Longest text of an exception that is quoted in one line.
_MOST_TEXT = 300

#: Frames below these folders are gradlint's own, or the import machinery's.
_PASSED_OVER = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.dirname(os.path.abspath(importlib.__file__)) + os.sep,
)


class LoadError(Exception):
    """The user's code could not be loaded.

    Args:
        message: one line, what happened.
        error: what was raised, None where nothing was.
        location: the line of the user's code that raised it, where known.
        kind: "raised", "exit" (SystemExit), "interrupt" (KeyboardInterrupt), "syntax",
            "missing" (a module that is not installed), "constructor" (a module class whose
            arguments could not be guessed), or "absent" (an op that is in the source but that
            importing did not define, for instance under a condition).
        hint: the next step.
    """

    def __init__(
        self,
        message: str,
        error: BaseException | None = None,
        location: Location | None = None,
        *,
        kind: str = "raised",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error = error
        self.location = location
        self.kind = kind
        self.hint = hint


def attempt(doing: str, call: Callable[[], _T], root: str = "") -> _T:
    """``call()``, with whatever the user's code raises (``SystemExit`` too) as a LoadError.

    Args:
        doing: what ``call`` does, such as "importing `mod`".
        call: the action.
        root: file or folder of the target, whose frames are the user's.
    """
    try:
        return call()
    except (GradlintError, LoadError):
        raise
    except BaseException as error:
        raise load_error(doing, error, root) from error


def load_error(doing: str, error: BaseException, root: str = "") -> LoadError:
    """The LoadError that says what ``error`` was, and where in the user's code it was raised."""
    location = raised_at(error, root)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return LoadError(
            f"syntax error: {first_line(error.msg)}",
            error,
            _syntax_place(error),
            kind="syntax",
            hint="Fix this line, then run gradlint again.",
        )
    if isinstance(error, SystemExit):
        code = "" if error.code is None else short_repr(error.code)
        return LoadError(
            f"{doing} called sys.exit({code})",
            error,
            location,
            kind="exit",
            hint='Move what only a script should run under `if __name__ == "__main__":`.',
        )
    if isinstance(error, KeyboardInterrupt):
        return LoadError(f"{doing} raised KeyboardInterrupt", error, location, kind="interrupt")
    if isinstance(error, ModuleNotFoundError) and error.name:
        return LoadError(
            f"{doing} needs the module `{error.name}`, which can't be found",
            error,
            location,
            kind="missing",
            hint=_how_to_get(error.name),
        )
    return LoadError(f"{doing} raised {error_line(error, _MOST_TEXT)}", error, location)


def _how_to_get(module: str) -> str:
    if module.partition(".")[0] == "triton":
        return (
            "Run `pip install triton` (on Linux; PyTorch for CUDA brings it). Without a GPU, "
            "`gradlint check --triton-interpret` then runs its kernels on the CPU."
        )
    return "Install it, or run gradlint from the folder that it is imported from."


def short_repr(value: object) -> str:
    """``repr(value)`` in one short line; survives a ``__repr__`` that raises."""
    try:
        text = repr(value)
    except BaseException:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:79] + "…"


def raised_at(error: BaseException, root: str = "") -> Location | None:
    """The last line of the user's own code in the traceback of ``error``.

    Frames of gradlint and of the import machinery never count. Frames below ``root`` are
    preferred, then those of neither installed packages nor the standard library, then any.
    """
    frames = [
        (frame.filename, frame.lineno or 1)
        for frame in _frames(error.__traceback__)
        if not frame.filename.startswith("<frozen") and not frame.filename.startswith(_PASSED_OVER)
    ]
    base = os.path.realpath(root) if root else ""
    tiers: tuple[Callable[[str], bool], ...] = (
        lambda file: bool(base) and (file == base or file.startswith(base + os.sep)),
        lambda file: not file.startswith(_library_folders()),
        lambda file: True,
    )
    for accepts in tiers:
        for filename, line in reversed(frames):
            if accepts(os.path.realpath(filename)):
                return _line_place(filename, line)
    return None


def _frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    try:
        return list(traceback.extract_tb(trace))
    except Exception:
        return []


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {entry for entry in sys.path if os.path.basename(entry) == "site-packages"}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders if folder)


def _line_place(filename: str, number: int) -> Location:
    source = read_source(filename)
    text = source.line(number) if source else ""
    indent = len(text) - len(text.lstrip())
    end = len(text.rstrip()) + 1
    return Location(shown_path(filename), number, indent + 1, number, max(end, indent + 2))


def _syntax_place(error: SyntaxError) -> Location:
    column = max(error.offset or 1, 1)
    return Location(shown_path(error.filename or ""), error.lineno or 1, column)
