"""Objects as short, printable text."""

from __future__ import annotations

import re
from typing import Any


def short_text(value: Any, limit: int = 60) -> str:
    """``repr(value)`` in at most ``limit`` characters; never raises, whatever the object does."""
    try:
        text = repr(value)
    except BaseException as error:
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    # Addresses differ from run to run.
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """``text`` as a plain ``str`` that UTF-8 can carry (lone surrogates become escapes)."""
    return str.encode(text, "utf-8", "backslashreplace").decode("utf-8")
