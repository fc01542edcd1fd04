"""The files beside an operator's own, in which it may be called: found without loading it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from gradlint.base.files import read_regular

#: Number and bytes of files that are searched in addition to the operator's own.
MOST_FILES = 60
MOST_BYTES = 400_000


def example_folders(path: str) -> list[str]:
    """The folders whose files may call what the file at ``path`` defines: its own, and tests."""
    folder = os.path.dirname(os.path.abspath(path))
    return [folder, os.path.join(folder, "tests"), os.path.join(os.path.dirname(folder), "tests")]


def texts_beside(path: str, folder: str, most: int = MOST_FILES) -> Iterator[tuple[str, bytes]]:
    """Paths and contents of the first Python files of ``folder``, but for ``path``."""
    if not os.path.isdir(folder):
        return
    own = os.path.abspath(path)
    seen = 0
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        if not entry.name.endswith(".py") or entry.path == own or not entry.is_file():
            continue
        if seen >= most or entry.stat().st_size > MOST_BYTES:
            continue
        seen += 1
        with suppress(OSError):
            yield entry.path, read_regular(entry.path, MOST_BYTES)
