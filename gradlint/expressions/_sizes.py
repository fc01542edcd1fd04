"""Refusing what is too large before it exists: sizes, sequences, integers. No torch here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradlint.expressions import _limits as limits


class TooLarge(Exception):
    """What would be made is larger than the limits; the text says what."""


def check_elements(count: int | float) -> None:
    """Refuse a tensor of ``count`` elements that is too large."""
    if count > limits.MAX_ELEMENTS:
        shown = f"{count:,}" if count < 10**15 else "more than 10**15"
        raise TooLarge(
            f"it would make {shown} elements; at most {limits.MAX_ELEMENTS:,} are allowed"
        )


def check_size(size: Sequence[Any]) -> None:
    """Refuse a shape that is too large."""
    check_elements(math.prod(max(int(length), 0) for length in size))


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
        seen[id(value)] = max(1, sum(items(part, seen) for part in value))
    return seen[id(value)]


def check_items(value: Any) -> Any:
    """``value``, refused where it holds too many items."""
    if isinstance(value, (str, list, tuple, dict)):
        count = items(value)
        if count > limits.MAX_ITEMS:
            raise TooLarge(
                f"a sequence of {count:,} items; at most {limits.MAX_ITEMS:,} are allowed"
            )
    return value


def check_repeat(value: Any, times: int) -> None:
    """Refuse ``value * times`` for a string or sequence that would be too long."""
    if items(value) * max(times, 0) > limits.MAX_ITEMS:
        raise TooLarge(
            f"a sequence repeated {times:,} times; at most {limits.MAX_ITEMS:,} items are allowed"
        )


def check_bits(bits: int | float) -> None:
    """Refuse an integer of too many bits."""
    if bits > limits.MAX_BITS:
        raise TooLarge(f"an integer of more than {limits.MAX_BITS} bits")


def check_power(base: Any, exponent: Any) -> None:
    """Refuse a power of integers with too many bits."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1:
        check_bits((abs(base).bit_length() - 1) * exponent)
