"""The nearest valid name, for messages about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, limit: int = 1) -> list[str]:
    """At most ``limit`` members of ``known`` that ``name`` may have meant, best first."""
    by_lower: dict[str, str] = {}
    for item in sorted(known):
        by_lower.setdefault(item.lower(), item)
    # The matching is quadratic in the length: nobody means a name of 60 characters.
    lowered = name.lower()[:60]
    return [by_lower[item] for item in difflib.get_close_matches(lowered, by_lower, n=limit)]


def meant(name: str, known: Iterable[str]) -> str:
    """``did you mean `x`?`` for the nearest member of ``known``, or nothing."""
    found = nearest(name, known)
    return f"did you mean `{found[0]}`?" if found else ""
