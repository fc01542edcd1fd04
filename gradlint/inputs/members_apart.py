"""Axes of a size that code knows: it takes their members one by one.

``s[:, 0] * s[:, 1] * s[:, 2]`` multiplies the three edges of a triangle, and ``x.roll(-1, 1)`` and
``x.roll(-2, 1)`` are the other two. Forward may well run at another size, if it has a product or a
sum over the axis; it is not meant then.
"""

from __future__ import annotations

import ast
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator

#: Sizes that are looked for: of triangles, and of boxes and quaternions. Two members that are taken
#: apart may be the first two of many.
SIZES = (3, 4)


def sizes_taken_apart(texts: Iterable[str]) -> dict[int, set[int | None]]:
    """The sizes of :data:`SIZES` for which code, in ``texts``, takes all members of an axis one by
    one, by subscripts that are numbers or by rolling, and none beyond them; with the places of such
    axes, counted from the end behind an ellipsis, None where they are not known."""
    members: dict[int, set[int]] = defaultdict(set)
    shifts: set[int] = set()
    for text in texts:
        try:
            tree = ast.parse(textwrap.dedent(text))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript):
                for place, number in _numbers(node.slice):
                    members[place].add(number)
            elif isinstance(node, ast.Call):
                shifts.update(_shift(node))
    found: dict[int, set[int | None]] = {
        size: {place for place, taken in members.items() if taken == set(range(size))}
        for size in SIZES
    }
    for size in SIZES:
        if shifts == set(range(1, size)):
            found[size].add(None)
    return {size: places for size, places in found.items() if places}


def _numbers(index: ast.expr) -> Iterator[tuple[int, int]]:
    """The numbers in a subscript of several axes, and their places, counted from the end behind
    an ellipsis."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    dots = [k for k, part in enumerate(parts) if _is_ellipsis(part)]
    for place, part in enumerate(parts):
        if isinstance(part, ast.Constant) and type(part.value) is int and part.value >= 0:
            yield place - len(parts) if dots and place > dots[0] else place, part.value


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _shift(call: ast.Call) -> Iterator[int]:
    """By how many places a call rolls."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "roll":
        return
    own = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    given = call.args[1:2] if own else call.args[:1]
    for node in given:
        sign = node.operand if isinstance(node, ast.UnaryOp) else node
        if isinstance(sign, ast.Constant) and type(sign.value) is int:
            yield abs(sign.value)
