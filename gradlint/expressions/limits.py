"""How large an expression and what it makes may be, and the errors that say so.

The limits stop accidents and hostile specs; no formula of an operator comes near them.
All are heuristic: the largest formula of ``specs/`` has under 300 characters and depth 14.
Sizes are checked before anything of that size is made. Does not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradlint.base.errors import GradlintError

#: Characters of one expression.
MAX_LENGTH = 4_000

#: Nesting depth of the syntax tree. The interpreter uses two Python frames a level.
MAX_DEPTH = 100

#: Elements of one tensor: 2**26 doubles are 512 MiB.
MAX_ELEMENTS = 2**26

#: Elements of all tensors made in one evaluation.
MAX_TOTAL = 2**27

#: Multiplications of matrix products, decompositions and convolutions in one evaluation: 2**32 take
#: a second or two on one core.
MAX_WORK = 2**32

#: Pieces that a tensor is cut into: each is an object of its own.
MAX_PIECES = 2**14

#: Items of a list or tuple counted through all levels, and characters of a string.
MAX_ITEMS = 2**16

#: Bits of an integer.
MAX_BITS = 128


class ExpressionError(GradlintError):
    """An expression that is refused, or that failed when it was evaluated.

    Args:
        message: one line, what is wrong.
        text: the expression.
        column: where in ``text``, counted in characters from 1 (line ends count as one).
        hint: the nearest valid name, or what to write instead.
    """

    def __init__(self, message: str, *, text: str = "", column: int = 1, hint: str = "") -> None:
        super().__init__(message, place=f"column {column}", hint=hint)
        self.text = text
        self.column = column

    def pointed(self) -> str:
        """The line of the expression that is wrong, with a caret under the place."""
        before = self.text[: self.column - 1]
        start = before.rfind("\n") + 1
        line = self.text[start:].split("\n", 1)[0]
        return f"{line}\n{' ' * (len(before) - start)}^"


class TooLarge(Exception):
    """What would be made is larger than the limits; the text says what."""


def kind_of(value: Any) -> str:
    """``value`` in a message, where its text could be long."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def check_elements(count: int | float) -> None:
    """Refuse a tensor of ``count`` elements that is too large."""
    if count > MAX_ELEMENTS:
        shown = f"{count:,}" if count < 10**15 else "more than 10**15"
        raise TooLarge(f"it would make {shown} elements; at most {MAX_ELEMENTS:,} are allowed")


def check_size(size: Sequence[Any]) -> None:
    """Refuse a shape that is too large.

    An axis of size zero does not make the others harmless: a sum over it has their size.
    """
    check_elements(math.prod(max(int(length), 1) for length in size))


def items(value: Any, seen: dict[int, int] | None = None) -> int:
    """Items of a sequence or characters of a string, through all levels.

    Shared parts count each time they occur, but are walked once.
    """
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return 1
    seen = {} if seen is None else seen
    if id(value) not in seen:
        held = [part for part in value if isinstance(part, (str, list, tuple, dict))]
        count = len(value) - len(held) + sum(items(part, seen) for part in held)
        seen[id(value)] = max(1, count)
    return seen[id(value)]


def check_items(value: Any) -> Any:
    """``value``, refused where it holds too many items."""
    if isinstance(value, (str, list, tuple, dict)):
        count = items(value)
        if count > MAX_ITEMS:
            raise TooLarge(f"a sequence of {count:,} items; at most {MAX_ITEMS:,} are allowed")
    return value


def check_repeat(count: int, times: int) -> None:
    """Refuse to repeat ``count`` characters or items so often that it would be too long."""
    if count * max(times, 0) > MAX_ITEMS:
        raise TooLarge(
            f"a sequence repeated {times:,} times; at most {MAX_ITEMS:,} items are allowed"
        )


def check_work(count: int | float) -> None:
    """Refuse ``count`` multiplications where that takes too long."""
    if count > MAX_WORK:
        shown = f"{count:,}" if count < 10**15 else "more than 10**15"
        raise TooLarge(f"it would take {shown} multiplications; at most {MAX_WORK:,} are allowed")


def check_bits(bits: int | float) -> None:
    """Refuse an integer of too many bits."""
    if bits > MAX_BITS:
        raise TooLarge(f"an integer of more than {MAX_BITS} bits")


def check_power(base: Any, exponent: Any) -> None:
    """Refuse a power of integers with too many bits."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1:
        check_bits((abs(base).bit_length() - 1) * exponent)
