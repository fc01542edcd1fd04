"""Explain PyTorch's own error texts: what they mean, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from gradlint.base.text import error_line, error_text
from gradlint.diagnosis._engine_texts import KNOWN, SURROUNDINGS

#: Errors that speak of what an op needs beside its arguments: no other arguments avoid them.
BESIDE_THE_INPUTS = frozenset({slug for slug, *_ in SURROUNDINGS} | {"cuda-tensors-only"})


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
    text = error_text(error)
    found = explain_text(text)
    if found is None:  # what Python raises is known by its type
        found = explain_text(error_line(error))
    return None if found is None else replace(found, text=text)


def explain_text(text: str) -> Explanation | None:
    """The explanation of an error text; None if it is not in the table."""
    for slug, pattern, meaning, fix in _compiled():
        if pattern.search(text):
            return Explanation(slug, meaning, fix, text)
    return None


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[str, re.Pattern[str], str, str], ...]:
    return tuple((slug, re.compile(text, re.S), meaning, fix) for slug, text, meaning, fix in KNOWN)
