"""In a worker: import a file as if it held something else, to try a change before it is made.

Everything else about the file stays as it is: its path, its module's name, and what it imports
beside it. Nothing is written, neither the file nor bytecode of the changed text.
"""

from __future__ import annotations

import linecache
import os
import tokenize
from importlib.machinery import SourceFileLoader
from io import BytesIO, TextIOWrapper
from typing import Any

from gradlint.model.op import Overlay
from gradlint.targets.source_file import overlay_source


def enter(overlay: Overlay) -> None:
    """From now on, this process imports and reads the file of ``overlay`` as if it held its text.

    For a worker that ends with its job: nothing undoes it.
    """
    overlay_source(overlay.path, overlay.text)
    base = os.path.basename(overlay.path)

    def meant(path: Any) -> bool:
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
        return os.path.basename(text) == base and os.path.realpath(text) == overlay.path

    read, look = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        return overlay.text if meant(path) else read(self, path)

    def path_stats(self: SourceFileLoader, path: str) -> Any:
        # Without these Python neither uses the bytecode of the file nor keeps any.
        if meant(path):
            raise OSError(f"{path} is overlaid")
        return look(self, path)

    SourceFileLoader.get_data = get_data  # type: ignore[assignment, method-assign]
    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]
    _remember_lines(overlay)


def _remember_lines(overlay: Overlay) -> None:
    """What ``inspect`` and tracebacks show. A time of None keeps ``linecache`` from looking at the
    file again."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(overlay.text).readline)
        text = TextIOWrapper(BytesIO(overlay.text), encoding).read()
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return  # importing it says what is wrong
    lines = [f"{line}\n" for line in text.split("\n")]
    for name in (overlay.path, os.path.relpath(overlay.path)):
        linecache.cache[name] = (len(text), None, lines, overlay.path)
