"""Comments that accept findings: ``# gradlint: ignore[GL602] reason``. Does not import torch."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from gradlint.base.text import nearest
from gradlint.model.report import Location
from gradlint.targets.source_file import SourceFile, shown_path

_COMMENT = re.compile(r"#\s*gradlint:\s*ignore\[(?P<codes>[^\]]*)\]\s*(?P<reason>.*)$")

#: Anything that may be meant as such a comment.
_LIKE_ONE = re.compile(
    r"#\s*gradlint\s*:\s*(?P<word>[A-Za-z][\w-]*)\s*(?P<list>\[(?P<codes>[^\]]*)\])?(?P<rest>.*)$"
)

#: What stands between the codes and the reason.
_DASHES = "-—:# "

#: The one word that is known after ``gradlint:``.
_WORD = "ignore"


@dataclass(frozen=True)
class Suppression:
    """The reason that a comment gives, and the line it stands on."""

    reason: str
    line: int


@dataclass(frozen=True)
class SuppressingComment:
    """A comment that accepts findings, or is meant to.

    Args:
        location: of the comment.
        codes: as they are written; empty where it names none.
        reason: empty where it gives none.
        effective: whether it has the form in which it is obeyed.
    """

    location: Location
    codes: tuple[str, ...]
    reason: str
    effective: bool


def suppressions_in(source: SourceFile, first: int, last: int) -> dict[str, Suppression]:
    """Rule code → why it is accepted, by comments in the lines ``first`` to ``last`` of a file."""
    found = {}
    for number in range(first, last + 1):
        matched = _COMMENT.search(source.line(number))
        if matched:
            suppression = Suppression(_reason(matched["reason"]), number)
            codes = filter(None, (code.strip() for code in matched["codes"].split(",")))
            found.update(dict.fromkeys(codes, suppression))
    return found


def head_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    """First and last line of the decorators and the header of a class or function."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, max(node.lineno, node.body[0].lineno - 1)


def suppressing_comments(source: SourceFile, first: int, last: int) -> Iterator[SuppressingComment]:
    """The comments in the lines ``first`` to ``last`` that accept findings, or are meant to: also
    those without a code, and those in which the word is mistyped. Texts that quote such a comment
    are none."""
    if not any("gradlint" in source.line(number) for number in range(first, last + 1)):
        return
    for line, column, text in _comments(source):
        matched = _LIKE_ONE.search(text) if first <= line <= last else None
        if matched is None or not nearest(matched["word"], [_WORD], similarity=0.7):
            continue
        codes = tuple(filter(None, (code.strip() for code in (matched["codes"] or "").split(","))))
        start = column + matched.start() + 1
        place = Location(shown_path(source.path), line, start, line, column + len(text) + 1)
        effective = _COMMENT.search(text) is not None
        yield SuppressingComment(place, codes, _reason(matched["rest"]), effective)


def _reason(text: str) -> str:
    return text.strip().lstrip(_DASHES).strip()


@lru_cache(maxsize=8)
def _comments(source: SourceFile) -> list[tuple[int, int, str]]:
    """Line, column from 0, and text of every comment, as far as the file can be read."""
    lines = iter([f"{line}\n" for line in source.lines])
    found: list[tuple[int, int, str]] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            if token.type == tokenize.COMMENT:
                found.append((*token.start, token.string))
    return found
