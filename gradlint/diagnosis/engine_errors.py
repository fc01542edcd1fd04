"""Explain PyTorch's own error texts: what they mean, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gradlint.diagnosis._engine_texts import KNOWN

#: Characters of an exception's text that are kept (heuristic: the compiler's texts are a tenth of
#: that; searching a text of 50 MB takes longer than a check may).
MOST_TEXT = 20_000


@dataclass(frozen=True)
class Explanation:
    """A common error, explained.

    Args:
        slug: names the mistake, such as ``saved-tensor-modified``.
        meaning: what it means, in one sentence.
        fix: what to change.
        text: the original text, as it was.
    """

    slug: str
    meaning: str
    fix: str
    text: str


#: Errors by which the engine rejects what backward returned, with the rule that reports each.
REJECTIONS = {
    "wrong-number-of-gradients": "GL101",
    "gradient-for-non-tensor": "GL102",
    "gradient-not-a-tensor": "GL104",
    "invalid-gradient-shape": "GL201",
    "invalid-gradient-dtype": "GL203",
    "invalid-gradient-device": "GL204",
}


def explain(error: BaseException) -> Explanation | None:
    """The explanation of ``error``, or None for an error that is not in the table.

    Safe on exceptions whose ``__str__`` raises.
    """
    return explain_text(error_text(error))


def explain_text(text: str) -> Explanation | None:
    """The explanation of an error text; None if it is not in the table."""
    for slug, pattern, meaning, fix in _compiled():
        if pattern.search(text):
            return Explanation(slug, meaning, fix, text)
    return None


def error_text(error: BaseException) -> str:
    """``str(error)``, cut to :data:`MOST_TEXT` characters, or a text that says why it has none;
    never raises."""
    try:
        text = str(error)
        return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…"
    except BaseException as inner:
        return f"<{type(error).__name__}, whose __str__ raises {type(inner).__name__}>"


def error_line(error: BaseException, limit: int = 200) -> str:
    """``ErrorType: first line of its text``, cut to ``limit`` characters; never raises."""
    text = error_text(error).strip()
    first = text.splitlines()[0] if text else ""
    line = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return line if len(line) <= limit else line[: limit - 1] + "…"


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[str, re.Pattern[str], str, str], ...]:
    return tuple((slug, re.compile(text, re.S), meaning, fix) for slug, text, meaning, fix in KNOWN)
