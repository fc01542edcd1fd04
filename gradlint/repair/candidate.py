"""A candidate: a change of a source text that may mend a finding, and how well it fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Fit(IntEnum):
    """How well a candidate fits the diagnosis; the better ones are tried first."""

    NAMED = 0  # the diagnosis names this change
    LIKELY = 1  # one of a few ways to undo the cause that was named
    GUESS = 2  # a change near the place
    REWRITE = 3  # works whatever the fault is, and costs time when it runs


@dataclass(frozen=True)
class Edit:
    """``text`` takes the place of what lies between two offsets of the source, in characters."""

    start: int
    end: int
    text: str

    @property
    def size(self) -> int:
        """Characters that go, and characters that come."""
        return self.end - self.start + len(self.text)


@dataclass(frozen=True)
class Candidate:
    """A change that may mend a finding.

    Args:
        title: says what to change, as a whole sentence without its full stop.
        edits: of the source; none overlap.
        fit: see :class:`Fit`.
        note: what a reader must know before taking it; may be empty.
    """

    title: str
    edits: tuple[Edit, ...]
    fit: Fit
    note: str = ""

    @property
    def size(self) -> int:
        """How much it changes, in characters."""
        return sum(edit.size for edit in self.edits)


def changed(text: str, edits: Iterable[Edit]) -> str | None:
    """``text`` with ``edits`` made; None if two of them overlap."""
    made, last = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < last:
            return None
        made += [text[last : edit.start], edit.text]
        last = edit.end
    return "".join([*made, text[last:]])


def narrowed(text: str, edit: Edit) -> Edit:
    """``edit`` without what it leaves as it was at its ends."""
    old, new = text[edit.start : edit.end], edit.text
    shortest = min(len(old), len(new))
    head = next((k for k in range(shortest) if old[k] != new[k]), shortest)
    rest = shortest - head
    tail = next((k for k in range(rest) if old[-1 - k] != new[-1 - k]), rest)
    return Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail])
