"""The command line. ``main`` is the console script."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.running.server import Load

__all__ = ["main"]

#: Commands that always need a worker.
_WORKING = ("check", "fix", "list", "sweep", "replay", "watch", "serve", "overrides", "init")
_WORKING_IN_GROUP = (
    *(("kernels", "build"), ("kernels", "check"), ("kernels", "bench")),
    *(("baseline", "write"), ("baseline", "prune")),
)

#: A line of a pyproject.toml that begins a table, with its name; one that may name a cache of
#: verdicts or a cluster, in the table of gradlint or from further out. If it is about something
#: else, the server starts a little later, and that is all.
_TABLE = re.compile(rb"\s*\[{1,2}([^\[\],=]+)\]")
_CACHE_SET = re.compile(rb".*\b(cache|cluster)[\"']?\s*=")

#: Bytes of a pyproject.toml that are looked at.
_MOST_BYTES = 2**20

#: Folders that are looked at before the server starts (heuristic: a few milliseconds).
_MOST_FOLDERS = 100


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (see ``gradlint.cli.app.main``).

    Args:
        args: the words after the program's name; default those it was called with.
    """
    words = list(sys.argv[1:] if args is None else args)
    if not _works(words):
        from gradlint.cli.app import main as run

        return run(words)
    # Before anything that takes time: a signal that comes from here on ends the run in order.
    from gradlint.running import interruption as _interruption

    with _interruption.guarded(for_good=args is None) as signals:
        code = _run(words, once=args is None)
    if args is None:
        _interruption.block()
    return signals.exit_code if code == 130 else code


def _run(words: list[str], *, once: bool) -> int:
    from gradlint.cli import starting as _starting

    _starting.show(words)
    from gradlint.running import server as _server

    if "--triton-interpret" in words:
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
    _server.adopt()
    if once:
        _server.serve_once()
    try:
        # torch loads while the command line is imported and read
        if not (_may_remember(words) or _records(words)):
            many = any(_holds_many(word) for word in words[1:])
            _server.start(_load(words), private="--untrusted" in words, many=many)
        from gradlint.cli.app import main as run

        return run(words)
    except KeyboardInterrupt:
        return 130
    finally:
        _starting.clear()
        _server.stop()


def _works(words: Sequence[str]) -> bool:
    """Whether the command will need a worker."""
    named = len(words) > 1 and (words[0] in _WORKING or tuple(words[:2]) in _WORKING_IN_GROUP)
    return named and not {"-h", "--help"} & set(words)


def _may_remember(words: Sequence[str]) -> bool:
    """Whether no worker may be needed here: verdicts may be read from a cache, or operators be
    checked on a cluster."""
    if words[0] != "check":
        return False
    named = any(word.partition("=")[0] in ("--cache", "--cluster") for word in words)
    if named or os.environ.get("GRADLINT_CACHE") or os.environ.get("GRADLINT_CLUSTER"):
        return True
    folder = os.getcwd()
    while True:
        with suppress(OSError), open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            if _sets_cache(file.read(_MOST_BYTES)):
                return True
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _sets_cache(text: bytes) -> bool:
    """Whether a pyproject.toml may name a cache or a cluster for gradlint: many name a ``cache``
    elsewhere, as an extra of their own."""
    ours = True
    for line in text.splitlines():
        if table := _TABLE.match(line):
            names = [name.strip(b" \t\"'") for name in table[1].split(b".")]
            ours = names[:2] in ([b"tool"], [b"tool", b"gradlint"])
        elif ours and _CACHE_SET.match(line):
            return True
    return False


def _records(words: Sequence[str]) -> bool:
    """Whether a program of the user's runs first, from which the server would take time."""
    return any(word.partition("=")[0] == "--from" for word in words)


def _load(words: Sequence[str]) -> Load:
    if tuple(words[:2]) == ("kernels", "build"):
        return "torch"
    return "tracing" if words[0] == "check" and _traces(words) else "rules"


def _traces(words: Sequence[str]) -> bool:
    """Whether rules that trace may be among those selected (GL9, unless others are named)."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    named = [after for word, after in pairs if word == "--select"]
    named += [word.partition("=")[2] for word in words if word.startswith("--select=")]
    return not named or any("GL9" in text.upper() or "ALL" in text.upper() for text in named)


def _holds_many(word: str) -> bool:
    """Whether ``word`` names a folder with so many files that it may hold many operators. How many
    there are is known only when all are read; the server may be loaded by then."""
    from gradlint.running.server import MANY_OPERATORS

    files = 0
    for _, _, names in islice(os.walk(word), _MOST_FOLDERS):
        files += sum(name.endswith(".py") for name in names)
        if files >= MANY_OPERATORS:
            return True
    return False
