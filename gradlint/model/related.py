"""Sizes that follow from other sizes: n - 1 differences of n points, n·(n - 1)/2 pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: The names of sizes in a formula, in order.
LETTERS = "nkml"

#: An axis of a tensor: the position of the tensor among those of a sample, and of the axis.
Axis = tuple[int, int]


@dataclass(frozen=True)
class Formula:
    """A size as a function of others.

    Args:
        text: an expression of integers and of the first ones of :data:`LETTERS`, with ``+``, ``-``,
            ``*`` and ``//``.
    """

    text: str

    def at(self, sizes: Sequence[int]) -> int:
        """The size where the others are ``sizes``; it may be negative."""
        values = dict(zip(LETTERS, sizes, strict=False))
        return int(eval(self.text, {"__builtins__": {}}, values))


@dataclass(frozen=True)
class RelatedAxis:
    """An axis whose size follows from others.

    Args:
        axis: that axis.
        formula: how it follows.
        bases: for each size in the formula, the axes that have it.
    """

    axis: Axis
    formula: Formula
    bases: tuple[tuple[Axis, ...], ...]
