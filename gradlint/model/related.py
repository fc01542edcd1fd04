"""Sizes that follow from other sizes, n - 1 differences of n points, and bounds of values: lengths
are at most the size of an axis."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: The names of sizes in a formula, in order.
LETTERS = "nkml"

#: How a size may follow from another one: differences, bin edges, halves and doubles, real spectra,
#: pairs with and without those of an element with itself, squares.
FORMULAS = (
    "n - 1",
    "n + 1",
    "n // 2",
    "2 * n",
    "n // 2 + 1",
    "n * (n - 1) // 2",
    "n * (n + 1) // 2",
    "n - 2",
    "n + 2",
    "2 * n - 1",
    "2 * n + 1",
    "2 * (n - 1)",
    "n * n",
    "3 * n",
    "4 * n",
)

#: An axis of a tensor: the position of the tensor among those of a sample, and of the axis.
Axis = tuple[int, int]

#: The name of a size: a letter of a formula, or ``x.0`` for an axis.
TERM = re.compile(r"[A-Za-z_][\w.]*")

#: An exponent that is larger belongs to no size.
_LARGEST_EXPONENT = 16


def _power(base: int, exponent: int) -> int:
    if not 0 <= exponent <= _LARGEST_EXPONENT:
        raise ValueError(f"{base}**{exponent} is no size")
    return int(base**exponent)


#: A quotient of sizes is a size.
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _power,
}


def size_of(text: str, sizes: Mapping[str, int]) -> int:
    """The value of a sum, product, quotient or power of ``sizes`` and integers; it may be negative.

    Raises:
        ValueError: ``text`` is none, names another size, divides by zero, or is too large a power.
    """

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand)
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](value(left), value(right))
        raise ValueError(f"{text!r} is no sum, product, quotient or power of sizes")

    try:
        spelled = TERM.sub(lambda term: f"({sizes[term[0]]})", text)
        return value(ast.parse(spelled.strip(), mode="eval").body)
    except (KeyError, SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"{text!r} is no size where {dict(sizes)} are given") from error


@dataclass(frozen=True)
class Formula:
    """A size as a function of others.

    Args:
        text: an expression of integers and of the first ones of :data:`LETTERS`, with ``+``, ``-``,
            ``*`` and ``//``.
    """

    text: str

    def at(self, sizes: Sequence[int]) -> int:
        """The size where the others are ``sizes``; it may be negative.

        Raises:
            ValueError: the text is no formula of as many sizes.
        """
        return size_of(self.text, dict(zip(LETTERS, sizes, strict=False)))


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


@dataclass(frozen=True)
class Side:
    """One side of a bound: the values of a tensor, the size of one of its axes, or a number.

    Args:
        of: the tensor, by its name or position; None for a number.
        axis: the axis whose size it is; None for the values.
        number: that number.
    """

    of: str | int | None = None
    axis: int | None = None
    number: int = 0


@dataclass(frozen=True)
class Bound:
    """A bound that holds element by element.

    Args:
        less: what is the lesser side.
        more: what is the greater one.
        strict: whether they are never equal.
    """

    less: Side
    more: Side
    strict: bool = False
