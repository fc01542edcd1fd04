"""Whether the values that a spec gives fit a tensor, found without torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gradlint.spec._model import Input

#: Integer dtype → its smallest and its largest value.
_INTEGERS = {
    "uint8": (0, 2**8 - 1),
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    "bool": (0, 1),
}

#: The type of integers where no dtype is given.
_DEFAULT = "int64"


def wrong_value(item: Input) -> tuple[str, str]:
    """The key of ``item`` whose numbers can't be elements of its tensor, and why; two empty texts
    where all can."""
    dtype = _dtype(item)
    for key, given in (("value", item.value), ("values", item.values)):
        if given is None:
            continue
        nested = key == "value"
        for element in _elements(given, nested):
            why = _wrong(element, dtype)
            if why:
                return key, why
    return "", ""


def wrong_range(item: Input, low: int, high: int) -> str:
    """Why integers from ``low`` to ``high`` (left out) can't be elements of the tensor of ``item``;
    "" where they can."""
    dtype = _dtype(item)
    kind = dtype if dtype in _INTEGERS else _DEFAULT
    least, most = _INTEGERS[kind]
    if low < least or high - 1 > most:
        return f"the integers in [{_short(low)}, {_short(high)}) are not all within {kind}'s"
    return ""


def _dtype(item: Input) -> str:
    if item.dtype is not None:
        return item.dtype.removeprefix("torch.")
    return "bool" if item.boolean else ""


def _elements(value: Any, nested: bool) -> Iterator[Any]:
    """The numbers of ``value``, and whatever stands where one should."""
    if not isinstance(value, list):
        yield value
        return
    for part in value:
        if nested:
            yield from _elements(part, nested)
        else:
            yield part


def _wrong(element: Any, dtype: str) -> str:
    if not isinstance(element, (bool, int, float)):
        shown = {"list": "a list", "dict": "a mapping", "NoneType": "null"}.get(
            type(element).__name__, f"`{str(element)[:40]}`"
        )
        return f"{shown} can't be an element of a tensor, which holds numbers"
    if isinstance(element, int):
        least, most = _INTEGERS.get(dtype if dtype in _INTEGERS else _DEFAULT, (0, 0))
        if not least <= element <= most:
            return f"{_short(element)} is not within the integers of {dtype or _DEFAULT}"
    elif dtype in _INTEGERS and not (math.isfinite(element) and element.is_integer()):
        return f"{element} is no integer, and the dtype is {dtype}"
    return ""


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**25 else f"{float(number):.3g}"
