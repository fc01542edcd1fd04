"""Short texts for messages: the nearest valid name, an exception in one line, any object."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

#: Characters of a name that are compared: matching is quadratic in the length, and nobody means a
#: name of more than 60 characters.
_COMPARED = 60

#: Pairs of characters that one search compares at most (heuristic: the 400 names of expressions
#: take some 60,000; without it, thousands of similar names took minutes).
_PAIRS = 150_000

#: Room for rounding where ratios are compared without dividing.
_ROUNDING = 1e-9

#: Characters of an exception's text that :func:`error_text` keeps.
_MOST_TEXT = 20_000


def nearest(
    name: str, known: Iterable[str], *, limit: int = 1, similarity: float = 0.6
) -> list[str]:
    """At most ``limit`` members of ``known`` that ``name`` may have meant, best first.

    Upper and lower case count as the same.

    Args:
        name: what was written.
        known: the valid names.
        limit: how many to return.
        similarity: the least ratio of matching characters (see ``difflib``), 0 to 1.
    """
    written = name.casefold()[:_COMPARED]
    letters = set(written)
    # The ratio is 2 * matches / (both lengths), and no more characters match than the shorter has,
    # or than occur in the other. Most names are left out here, before the costly comparison.
    reach = (2 - similarity) * len(written) + _ROUNDING
    alike = [
        item
        for item in known
        if similarity * (length := len(item.casefold())) <= reach
        and similarity * len(written) <= (2 - similarity) * length + _ROUNDING
        and length <= 2 * _COMPARED
    ]
    folded: dict[str, str] = {}
    for item in sorted(alike):
        folded.setdefault(item.casefold(), item)
    # Those of about the same length first: where there are too many, the others are left out.
    affordable = []
    pairs = 0
    for item in sorted(folded, key=lambda item: abs(len(item) - len(written))):
        shared = sum(map(letters.__contains__, item))
        if 2 * shared < similarity * (len(item) + len(written)) - _ROUNDING:
            continue
        pairs += min(len(item), _COMPARED) * len(written)
        if pairs > _PAIRS:
            break
        affordable.append(item)
    matches = difflib.get_close_matches(written, sorted(affordable), n=limit, cutoff=similarity)
    return [folded[match] for match in matches]


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """``did you mean `x`?`` for the nearest member of ``known``; ``otherwise`` if none is near."""
    found = nearest(name, known)
    return f"did you mean `{found[0]}`?" if found else otherwise


def error_text(error: BaseException) -> str:
    """The text of ``error``, cut where it is endless; never raises, whatever ``__str__`` does."""
    try:
        text = str(error)
    except BaseException as inner:
        return f"<{type(error).__name__}, whose __str__ raises {type(inner).__name__}>"
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"


def first_line(text: str, limit: int = 200) -> str:
    """The first line of ``text`` that is not blank, cut to ``limit`` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def error_line(error: BaseException, limit: int = 200) -> str:
    """``ErrorType: first line of its text``, cut to ``limit`` characters; never raises."""
    return typed_line(type(error).__name__, error_text(error), limit)


def typed_line(kind: str, text: str, limit: int = 200) -> str:
    """:func:`error_line` for an exception of which only the type's name and the text are known."""
    line = first_line(text, limit)
    return first_line(f"{kind}: {line}" if line else kind, limit)


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


#: User and password in a URL.
_USER = re.compile(r"(?<=://)[^/@\s]*@")


def without_password(text: str) -> str:
    """``text`` with ``***@`` in the place of every user's name and password in a URL."""
    return _USER.sub("***@", text)
