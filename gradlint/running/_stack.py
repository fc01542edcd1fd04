"""Python stacks: those that faulthandler prints when a process dies, and where the user's code
is in them."""

from __future__ import annotations

import importlib.util
import os
import re
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from gradlint.model.report import Excerpt, Location
from gradlint.targets.source_file import shown_path

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.*)$')
_THREAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-fA-F]+")
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")

#: Lines of source shown above and below the one pointed at.
_CONTEXT = 2


@dataclass(frozen=True)
class Frame:
    """One level of a Python stack."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line} in {self.function}"


@dataclass(frozen=True)
class Stack:
    """Frames of the thread that matters, innermost first."""

    frames: tuple[Frame, ...] = ()

    @classmethod
    def of(cls, frames: Iterable[Iterable[object]]) -> Stack:
        """From triples of file, line and function."""
        made = []
        for file, line, function in frames:
            made.append(Frame(str(file), int(str(line)), str(function)))
        return cls(tuple(made))

    def user_frame(self, home: str | None = None) -> Frame | None:
        """The innermost frame that is neither Python's, torch's nor gradlint's own.

        Args:
            home: file of the operator, which counts as the user's wherever it lies.
        """
        for frame in self.frames:
            if _same(frame.file, home) or not _foreign(frame.file):
                return frame
        return None

    def user_lines(self, home: str | None = None, limit: int = 12) -> list[str]:
        """The user's part of the stack as text, innermost first, with the library function that
        was running, if any, on top."""
        lines = []
        for depth, frame in enumerate(self.frames):
            if _inside(frame.file, _own_folder()):
                break
            foreign = _foreign(frame.file) and not _same(frame.file, home)
            if not foreign:
                lines.append(str(frame))
            elif depth == 0:
                lines.append(f"{_short(frame.file)}:{frame.line} in {frame.function}")
        return lines[:limit]


def parse(text: str) -> Stack:
    """The stack in what faulthandler printed: of the current thread, or of the first that has
    a frame of the user's."""
    threads: list[list[Frame]] = []
    current: list[Frame] | None = None
    for line in text.splitlines():
        if _THREAD.match(line):
            if "C stack" in line:
                current = None
                continue
            current = []
            if line.startswith("Current"):
                threads.insert(0, current)
            else:
                threads.append(current)
        elif current is not None and (match := _FRAME.match(line)):
            number = match["line"]
            current.append(
                Frame(
                    _unescape(match["file"]),
                    int(number) if number.isdigit() else 0,
                    _unescape(match["function"]),
                )
            )
    stacks = [Stack(tuple(frames)) for frames in threads]
    for stack in stacks:
        if stack.user_frame() is not None:
            return stack
    return stacks[0] if stacks else Stack()


def place(frame: Frame | None, label: str = "") -> tuple[Location | None, Excerpt | None]:
    """Location of ``frame`` and the source around it, where the file can be read."""
    if frame is None or frame.line < 1:
        return None, None
    try:
        with open(frame.file, encoding="utf-8", errors="replace") as source:
            lines = source.read().splitlines()
        text = lines[frame.line - 1]
    except (OSError, IndexError, ValueError):
        return Location(shown_path(frame.file), frame.line), None
    first = max(1, frame.line - _CONTEXT)
    around = tuple(enumerate(lines[first - 1 : frame.line + _CONTEXT], start=first))
    column = len(text) - len(text.lstrip()) + 1
    end = len(text.rstrip()) + 1
    location = Location(
        shown_path(frame.file), frame.line, column, frame.line, max(end, column + 1)
    )
    return location, Excerpt(around, label)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1][1:], 16)), text)


def _foreign(file: str) -> bool:
    if file.startswith("<"):
        return True
    if any(_inside(file, folder) for folder in (_own_folder(), *_torch_folders())):
        return True
    paths = sysconfig.get_paths()
    if any(_inside(file, paths[name]) for name in ("purelib", "platlib")):
        return False
    return any(_inside(file, paths[name]) for name in ("stdlib", "platstdlib"))


def _same(file: str, home: str | None) -> bool:
    return home is not None and os.path.abspath(file) == os.path.abspath(home)


def _short(file: str) -> str:
    """``ctypes/__init__.py`` for a file of a library: its last folder and name."""
    return "/".join(file.split(os.sep)[-2:])


def _inside(file: str, folder: str) -> bool:
    return file.startswith(folder + os.sep)


@lru_cache(maxsize=1)
def _own_folder() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@lru_cache(maxsize=1)
def _torch_folders() -> tuple[str, ...]:
    spec = importlib.util.find_spec("torch")
    return tuple(spec.submodule_search_locations or ()) if spec is not None else ()
