"""Numbers of axes that an op's documentation gives: ``(N, C, L)`` in a docstring or a comment."""

from __future__ import annotations

import re

from gradlint.inputs._annotations import prose
from gradlint.model.op import Op

#: Letters or short words in brackets, such as ``(N, C, L)`` or ``[batch, dim]``; with an ellipsis
#: or an asterisk among them for any number of axes. Not the arguments of a call, ``f(X, Y)``.
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,7}"
_AXIS = rf"(?:(?:\d\s*\*?\s*)?{_NAME}(?:\s*[-+*/]\s*\w{{1,3}})?|\d{{1,2}}|\*|\.\.\.|…)"
_SHAPE = re.compile(rf"(?<![\w.])[(\[]\s*({_AXIS}(?:\s*,\s*{_AXIS}){{1,5}})\s*,?\s*[)\]]")

#: An axis by itself: one capital letter, alone or with a short ending (``N``, ``C_in``, ``T1``).
_SYMBOL = re.compile(r"[A-Z][a-z]?(?:_?[a-z0-9]{1,4})?")
_ANY = frozenset({"*", "...", "…"})


def documented_ranks(op: Op) -> frozenset[int]:
    """Numbers of axes of the shapes that docstrings and comments of ``op`` show; empty where they
    show none, or one of any number of axes: ``(N, *)``, ``(..., D)``."""
    return ranks_in(prose(op.defining)) if op.defining is not None else frozenset()


def ranks_in(text: str) -> frozenset[int]:
    """Numbers of axes of the shapes in ``text``; at least one axis of a shape has a capital."""
    found = set()
    for match in _SHAPE.finditer(text):
        axes = [axis.strip() for axis in match.group(1).split(",")]
        if _ANY & set(axes):
            return frozenset()
        if any(_SYMBOL.fullmatch(axis) for axis in axes):
            found.add(len(axes))
    return frozenset(found)
