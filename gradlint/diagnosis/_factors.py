"""Describe factors: as simple fractions, sizes of axes, or constants common in formulas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from gradlint.diagnosis.evidence import EXPLAINED, Evidence

#: Largest denominator of a simple fraction.
SIMPLE = 16

#: Constants that are common in formulas, and how they are written.
CONSTANTS = (
    (math.pi, "pi"),
    (2.0 * math.pi, "2 pi"),
    (math.sqrt(2.0), "sqrt(2)"),
    (math.sqrt(math.pi), "sqrt(pi)"),
    (math.sqrt(2.0 * math.pi), "sqrt(2 pi)"),
    (math.sqrt(2.0 / math.pi), "sqrt(2/pi)"),
    (2.0 / math.sqrt(math.pi), "2/sqrt(pi)"),
    (math.e, "e"),
    (math.log(2.0), "ln 2"),
    (math.log(10.0), "ln 10"),
    (180.0 / math.pi, "180/pi"),
    (math.sqrt(3.0), "sqrt(3)"),
)


def recognised(factor: float, evidence: Sequence[Evidence], *, slack: float = EXPLAINED) -> str:
    """``factor`` as a simple fraction, a constant, or an expression of one size, else as a number.

    Args:
        slack: relative error that the factor may have.
    """
    found = _reading(factor, evidence, slack)
    return found[0] if found else f"{factor:.6g}"


def meaning(factor: float, evidence: Sequence[Evidence], *, slack: float = EXPLAINED) -> str:
    """A clause that says which size the factor contains; "" if it contains none."""
    found = _reading(factor, evidence, slack)
    return found[1] if found else ""


def _reading(factor: float, evidence: Sequence[Evidence], slack: float) -> tuple[str, str] | None:
    """How ``factor`` is written, and a clause on the size in it; None if it is not recognised."""
    sizes = list(_sizes(evidence[0])) if evidence else []
    fraction = Fraction(factor).limit_denominator(SIMPLE)
    if fraction != 0 and abs(float(fraction) - factor) <= slack * abs(factor):
        for size, words in sizes:
            if size > 4 and fraction in (size, Fraction(1, size)):
                return str(fraction), f"{size} is {words}"
        return str(fraction), ""
    for value, shown, clause in _known_values(sizes):
        for sign, mark in ((1.0, ""), (-1.0, "-")):
            if abs(sign * value - factor) <= slack * abs(factor):
                return mark + shown, clause
    return None


def _known_values(sizes: Sequence[tuple[int, str]]) -> Iterator[tuple[float, str, str]]:
    """Values that a factor may have, how they are written, and a clause on the size in them."""
    for size, words in sizes:
        for value, shown in _expressions(size):
            yield value, shown, f"{size} is {words}"
    for constant, shown in CONSTANTS:
        yield constant, shown, ""
        yield 1.0 / constant, f"1/({shown})", ""


def _expressions(size: int) -> Iterator[tuple[float, str]]:
    yield float(size), f"{size}"
    yield 1.0 / size, f"1/{size}"
    if size > 2:
        yield size - 1.0, f"({size} - 1)"
        yield 1.0 / (size - 1.0), f"1/({size} - 1)"
        yield size / (size - 1.0), f"{size}/{size - 1}"
        yield (size - 1.0) / size, f"{size - 1}/{size}"
    yield math.sqrt(size), f"sqrt({size})"
    yield 1.0 / math.sqrt(size), f"1/sqrt({size})"


def _sizes(item: Evidence) -> Iterator[tuple[int, str]]:
    """Sizes of the input and of the outputs, with a description, the likeliest first: of whole
    tensors, of axes, of several axes together."""
    name = item.names[item.index]
    tensors = [(tuple(item.own.shape), f"`{name}`")]
    outputs = [tuple(v.shape) for v in item.cotangents]
    tensors += [
        (shape, "the output" if len(outputs) == 1 else f"output {place}")
        for place, shape in enumerate(outputs)
    ]
    seen = {0, 1}
    for shape, words in tensors:
        count = math.prod(shape)
        if count not in seen:
            seen.add(count)
            yield count, f"the number of elements of {words}"
    for shape, words in tensors:
        for axis, size in enumerate(shape):
            if size not in seen:
                seen.add(size)
                yield size, f"the size of axis {axis} of {words}"
    for shape, words in tensors:
        for length in range(2, min(len(shape), 5)):
            for axes in itertools.combinations(range(len(shape)), length):
                size = math.prod(shape[axis] for axis in axes)
                if size not in seen:
                    seen.add(size)
                    yield size, f"the size of axes {list(axes)} of {words} together"
