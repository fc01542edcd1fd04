"""A line on the terminal while torch is being loaded, until there is anything else to show.

It is written before the server starts, so nothing is imported here that takes long.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

TEXT = "gradlint: loading torch"

#: Back to the first column, and the rest of the line erased (ECMA-48).
_ERASE = "\r\x1b[K"

#: Where the line stands, if it does.
_shown: TextIO | None = None


def show(words: Sequence[str]) -> None:
    """Write the line to stderr if that is a terminal and ``words``, the command, are not quiet."""
    global _shown
    stream = sys.stderr
    quiet = any(
        word == "--quiet" or (word[:1] == "-" != word[1:2] and "q" in word) for word in words
    )
    if quiet or stream is None or os.environ.get("TERM") == "dumb":
        return
    with suppress(OSError, ValueError):
        if stream.isatty():
            stream.write(_ERASE + TEXT)
            stream.flush()
            _shown = stream


def clear() -> None:
    """Erase the line, if it stands there."""
    global _shown
    stream, _shown = _shown, None
    if stream is not None:
        with suppress(OSError, ValueError):
            stream.write(_ERASE)
            stream.flush()
