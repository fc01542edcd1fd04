"""Source files as text and syntax trees: cached, with columns that count characters."""

from __future__ import annotations

import ast
import linecache
import os
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from gradlint.base.errors import TargetError
from gradlint.base.files import read_regular, unusable
from gradlint.model.report import Location

#: Files larger than this many bytes are not parsed: generated tables, not operators (heuristic).
MAX_BYTES = 8_000_000

#: Files larger than this are not even imported: compiling one takes some hundred times its size in
#: memory (measured: 8 MB of assignments take 1.1 GB), and none that people write comes near.
MAX_IMPORTED = 64_000_000

#: Files that are kept parsed, the latest ones: the syntax tree of a file of ten operators takes a
#: quarter of a megabyte, and a folder may have thousands (heuristic: an operator needs some of its
#: package).
MOST_KEPT = 128

_cache: dict[str, tuple[tuple[int, int], SourceFile]] = {}

#: Stands for the time and size of a file that is overlaid.
_OVERLAID = (-1, -1)

#: Files, by their real paths, that are read as if they held something else.
_overlaid: dict[str, bytes] = {}


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file of source.

    Args:
        path: as given to :func:`read_source`.
        lines: its lines without line ends, as Python's tokenizer counts them.
        tree: the syntax tree; None when the file can't be parsed.
        error: why it can't be parsed.
    """

    path: str
    lines: list[str] = field(default_factory=list)
    tree: ast.Module | None = None
    error: SyntaxError | None = None

    def line(self, number: int) -> str:
        """Text of line ``number`` (from 1), empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def column(self, number: int, offset: int) -> int:
        """Column in characters, from 1, of the UTF-8 byte ``offset`` that ``ast`` gives."""
        return len(self.line(number).encode()[:offset].decode(errors="replace")) + 1

    def span(self, node: ast.AST) -> Location:
        """The span of ``node``, with the path as shown to the user."""
        return self.between(node, node)

    def between(self, first: ast.AST, last: ast.AST) -> Location:
        """The span from the start of ``first`` to the end of ``last``."""
        line: int = getattr(first, "lineno", 1)
        end_line: int = getattr(last, "end_lineno", None) or line
        return Location(
            shown_path(self.path),
            line,
            self.column(line, getattr(first, "col_offset", 0)),
            end_line,
            self.column(end_line, getattr(last, "end_col_offset", None) or 0),
        )


def read_source(path: str) -> SourceFile | None:
    """The file at ``path``, parsed; None when its text is not available.

    What is not on disk (notebook cells, ``exec``) comes from ``linecache``.
    """
    overlaid = _overlaid.get(os.path.realpath(path)) if _overlaid else None
    if overlaid is not None:
        known = _cache.get(path)
        if known is None or known[0] != _OVERLAID:
            _cache[path] = known = (_OVERLAID, _decode_and_parse(path, overlaid))
        return known[1]
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        lines = linecache.getlines(path)
        return _parse(path, "".join(lines)) if lines else None
    known = _cache.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    try:
        raw = read_regular(path, MAX_BYTES)
    except OSError:
        return None
    source = _decode_and_parse(path, raw)
    _cache[path] = (stamp, source)
    if len(_cache) > MOST_KEPT:
        del _cache[next(iter(_cache))]
    return source


def overlay_source(path: str, text: bytes) -> None:
    """From now on, read the file at ``path`` as if it held ``text``.

    Args:
        path: absolute, links resolved.
    """
    _overlaid[path] = text


def read_shown_source(path: str) -> SourceFile | None:
    """The file at ``path`` as a report shows it, relative to the working directory; None when its
    text is not available, or that folder is gone."""
    try:
        return read_source(os.path.abspath(path))
    except FileNotFoundError:
        return None


def refuse_unsayable(path: str) -> None:
    """Raise if the name of a file can't be told to a worker, or written into a report.

    Raises:
        TargetError: it is not UTF-8.
    """
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        raise TargetError(f"`{path}` is not UTF-8", hint="rename the file, or its folder") from None


def refuse_unusable(path: str) -> None:
    """Raise if the existing file at ``path`` can't be imported for what it is.

    Raises:
        TargetError: it is a pipe, a device or a socket, or larger than :data:`MAX_IMPORTED`.
    """
    refuse_unsayable(path)
    try:
        why = unusable(path, MAX_IMPORTED)
    except OSError as error:
        why = f"can't be read: {error.strerror or error}"
    if why:
        raise TargetError(f"`{path}` {why}", hint="name a .py file that defines an operator")


def header(
    source: SourceFile, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Location:
    """The span of ``class Name`` or ``def name``, without decorators and body."""
    line = source.line(node.lineno)
    start = source.column(node.lineno, node.col_offset)
    end = line.find(node.name, start - 1)
    end = start + 1 if end < 0 else end + len(node.name) + 1
    return Location(shown_path(source.path), node.lineno, start, node.lineno, end)


def bindings(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of ``body``, those under ``if``, ``try``, ``with`` and loops included, but not
    those inside functions and classes."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from bindings(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from bindings(part.body)


def dotted(expression: ast.expr | None) -> str:
    """``a.b.c`` for names and attributes, else the empty string."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return ""
    return ".".join([expression.id, *reversed(parts)])


def literal(node: ast.expr) -> tuple[bool, Any]:
    """Whether ``node`` is a constant (or a tuple, list, set of them), and its value."""
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def shown_path(path: str) -> str:
    """``path`` relative to the working directory, unless the two share nothing but the root."""
    if not os.path.isabs(path) and not os.path.exists(path):
        return path
    absolute = os.path.abspath(path)
    try:
        here = os.getcwd()
        relative = os.path.relpath(absolute, here)
    except (OSError, ValueError):
        return absolute
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        # Where the working directory was reached through a link, real paths still agree.
        absolute, here = os.path.realpath(absolute), os.path.realpath(here)
        shared = os.path.commonpath([absolute, here])
        return absolute if shared == os.path.dirname(shared) else os.path.relpath(absolute, here)
    return relative


def _decode_and_parse(path: str, raw: bytes) -> SourceFile:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        line = 1
        if isinstance(error, UnicodeDecodeError):
            line = raw.count(b"\n", 0, error.start) + 1
        wrong = SyntaxError(f"cannot be decoded: {error}", (path, line, 1, ""))
        return SourceFile(path, _split(raw.decode("latin-1")), None, wrong)
    return _parse(path, text)


def _parse(path: str, text: str) -> SourceFile:
    lines = _split(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SourceFile(path, lines, ast.parse(text, path))
    except SyntaxError as error:
        return SourceFile(path, lines, None, error)
    except (ValueError, RecursionError, MemoryError) as error:
        return SourceFile(path, lines, None, SyntaxError(str(error), (path, 1, 1, "")))


def _split(text: str) -> list[str]:
    # Not str.splitlines: the tokenizer does not end lines at form feeds or U+2028.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
