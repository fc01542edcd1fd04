"""Evidence that rows are boxes: the lower corner, then the upper one.

Code says so by taking one half of each row from the other: ``b[:, 2:] - b[:, :2]``, or ``x2 - x1``
and ``y2 - y1`` after ``x1, y1, x2, y2 = b.unbind(-1)``. Numbers in any order would make boxes
without an inside, which overlap with nothing.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from gradlint.inputs._evidence import Evidence
from gradlint.targets.source_file import literal

#: Axes of the space that boxes lie in: fewer would make a box of every pair that is subtracted.
_SPACES = (2, 3)
#: Columns before the corners: none, or one that says which image a box lies in.
_BEFORE = (0, 1)

#: Finds the parameter that an expression stands for.
Finder = Callable[[ast.AST], Evidence | None]


#: Weight of the evidence for numbers where corners of boxes are subtracted from one another.
OF_BOXES = 4.0


@dataclass(frozen=True)
class Part:
    """Some columns of a parameter.

    Args:
        owner: the parameter.
        first: of the columns.
        end: the column after the last one; None for all that follow.
    """

    owner: Evidence
    first: int
    end: int | None


def part_of(node: ast.AST, find: Finder) -> Part | None:
    """The columns that ``b[:, :2]``, ``b[..., 2]`` or ``b[:, 2:4]`` takes of a parameter."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)):
        return None
    *before, last = node.slice.elts
    owner = find(node.value)
    if owner is None or not all(map(is_whole, before)):
        return None
    if not isinstance(last, ast.Slice):
        known, place = literal(last)
        column = known and type(place) is int and place >= 0
        return Part(owner, place, place + 1) if column else None
    first = literal(last.lower)[1] if last.lower is not None else 0
    end = literal(last.upper)[1] if last.upper is not None else None
    ends = (type(first) is int and first >= 0) and (end is None or type(end) is int)
    return Part(owner, first, end) if ends and last.step is None else None


def note_difference(upper: Part, lower: Part) -> None:
    """Record that the columns ``lower`` are taken from the columns ``upper`` of one parameter; its
    rows are boxes once all of one half are taken from the other, as far as the code says."""
    owner, width = upper.owner, upper.first - lower.first
    if owner is not lower.owner or lower.end is None or lower.end > upper.first:
        return
    for column in range(lower.first, lower.end):
        owner.spans.add((column, column + width))
    for space, before in itertools.product(_SPACES, _BEFORE):
        if {(before + k, before + k + space) for k in range(space)} <= owner.spans:
            if not owner.domain:
                owner.say("tensor", OF_BOXES)  # a target that is a box is no label
            owner.domain = owner.domain or "corners"
            owner.shape = owner.shape or (f"{owner.name}.0", f"={before + 2 * space}")


def is_whole(item: ast.expr) -> bool:
    """Whether an index takes all of an axis: ``:`` or ``...``."""
    if isinstance(item, ast.Slice):
        return item.lower is None and item.upper is None and item.step is None
    return isinstance(item, ast.Constant) and item.value is ...
