"""Describe factors: as simple fractions, sizes of axes, or constants common in formulas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gradlint.diagnosis._arguments import counts, numbers, shares
from gradlint.diagnosis.evidence import EXPLAINED, Evidence

#: Largest denominator of a simple fraction.
SIMPLE = 16

#: Sizes, counts and whole numbers among the arguments up to this one are also factors that formulas
#: have anyway (heuristic).
SMALL = 4

SIGNS = ((1.0, ""), (-1.0, "-"))

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
    """How ``factor`` is written, and a clause on the size or argument in it; None if it is not
    recognised."""

    def sign_of(value: float) -> str | None:
        near = [mark for sign, mark in SIGNS if abs(sign * value - factor) <= slack * abs(factor)]
        return near[0] if near else None

    fraction = Fraction(factor).limit_denominator(SIMPLE)
    simple = fraction != 0 and abs(float(fraction) - factor) <= slack * abs(factor)
    for known in _known_values(evidence[0]) if evidence else ():
        mark = sign_of(known.value)
        if mark is not None and (not simple or known.telling):
            return mark + known.shown, known.clause
        if mark is not None and known.plain:
            return str(fraction), known.clause
    if simple:
        return str(fraction), ""
    for constant, shown in CONSTANTS:
        for value, written in ((constant, shown), (1.0 / constant, f"1/({shown})")):
            mark = sign_of(value)
            if mark is not None:
                return mark + written, ""
    return None


@dataclass(frozen=True)
class _Known:
    """A value that a factor may have.

    Args:
        shown: how it is written.
        clause: what the size or argument in it is.
        plain: whether it is that size or argument itself, or its reciprocal.
        small: whether that is a small number, so that a factor has it by chance.
    """

    value: float
    shown: str
    clause: str
    plain: bool
    small: bool

    @property
    def telling(self) -> bool:
        """Whether it says more than a simple fraction of the same value."""
        return self.plain and not self.small


def _known_values(item: Evidence) -> Iterator[_Known]:
    for name, number in numbers(item.arguments).items():
        small = number.is_integer() and abs(number) <= SMALL
        for value, shown, plain in _of_argument(number, name):
            yield _Known(value, shown, f"`{name}` is {number:g}", plain, small)
    for count, shown, words in counts(item.arguments):
        if count > 2:
            clause = f"{count} is {words}"
            yield _Known(float(count), shown, clause, True, count <= SMALL)
            yield _Known(1.0 / count, f"1/{shown}", clause, True, count <= SMALL)
    for every, kept, shown, words in shares(item.arguments):
        if 0 < kept < every:
            clause = f"{kept} of {every} elements are {words}"
            for value, written in (
                (every / kept, f"{every}/{shown}"),
                (kept / every, f"{shown}/{every}"),
                (1.0 / kept, f"1/{shown}"),
            ):
                yield _Known(value, written, clause, True, False)
    for size, words, shown in _sizes(item):
        for value, written, plain in _expressions(size, shown):
            clause = f"{size} is {words}"
            yield _Known(value, written, clause, plain and size > 2, size <= SMALL)
    for size, words, shown in _sizes_of_others(item):
        for value, written in ((float(size), shown), (1.0 / size, f"1/{shown}")):
            yield _Known(value, written, f"{size} is {words}", size > 2, size <= SMALL)


def _of_argument(number: float, name: str) -> Iterator[tuple[float, str, bool]]:
    """A number, its square and root, its distance from 1, and their reciprocals; whether it is the
    number itself or its reciprocal."""
    values = [(number, name), (number**2, f"{name}**2"), (1.0 - number, f"(1 - {name})")]
    values += [(math.sqrt(number), f"sqrt({name})")] if number > 0.0 else []
    values += [(1.0 + number, f"(1 + {name})"), (2.0 * number, f"(2*{name})")]
    for value, shown in values:
        if value not in (0.0, 1.0, -1.0):
            yield value, shown, shown == name
            yield 1.0 / value, f"1/{shown}", shown == name


def _expressions(size: int, shown: str) -> Iterator[tuple[float, str, bool]]:
    """Values made of a size, how they are written, and whether they are the size itself or its
    reciprocal."""
    yield float(size), shown, True
    yield 1.0 / size, f"1/{shown}", True
    if size > 2:
        yield size - 1.0, f"({shown} - 1)", False
        yield 1.0 / (size - 1.0), f"1/({shown} - 1)", False
        yield size / (size - 1.0), f"{shown}/({shown} - 1)", False
        yield (size - 1.0) / size, f"({shown} - 1)/{shown}", False
    yield math.sqrt(size), f"sqrt({shown})", False
    yield 1.0 / math.sqrt(size), f"1/sqrt({shown})", False


def _sizes(item: Evidence) -> Iterator[tuple[int, str, str]]:
    """Sizes of the input and of the outputs, with a description and an expression for backward, the
    likeliest first: of whole tensors, of axes, of several axes together."""
    name = item.names[item.index]
    tensors = [(tuple(item.own.shape), f"`{name}`", name)]
    outputs = [tuple(v.shape) for v in item.cotangents]
    tensors += [
        (shape, "the output", "grad_output")
        if len(outputs) == 1
        else (shape, f"output {place}", f"grad_outputs[{place}]")
        for place, shape in enumerate(outputs)
    ]
    seen = {0, 1}
    for size, words, shown in _in_order(tensors):
        if size not in seen:
            seen.add(size)
            yield size, words, shown


def _sizes_of_others(item: Evidence) -> Iterator[tuple[int, str, str]]:
    """Sizes of the other inputs that neither the input nor an output has, such as the number of
    elements over which a mean is taken, with a description and an expression for backward. Inputs
    that have one in common are all named: which of them is meant is not known."""
    tensors = [
        (tuple(value.shape), f"`{name}`", name)
        for place, (name, value) in enumerate(zip(item.names, item.values, strict=False))
        if place != item.index
    ]
    own = {0, 1, *(size for size, *_ in _sizes(item))}
    found: dict[int, tuple[str, str]] = {}
    for size, words, shown in _in_order(tensors):
        if size in own:
            continue
        first, expression = found.setdefault(size, (words, shown))
        if expression.endswith(".numel()") and shown.endswith(".numel()") and shown != expression:
            found[size] = (f"{first} and of {words.rpartition(' ')[2]}", expression)
    for size, (words, shown) in found.items():
        yield size, words, shown


def _in_order(
    tensors: Sequence[tuple[tuple[int, ...], str, str]],
) -> Iterator[tuple[int, str, str]]:
    for shape, words, name in tensors:
        yield math.prod(shape), f"the number of elements of {words}", f"{name}.numel()"
    for shape, words, name in tensors:
        for axis, size in enumerate(shape):
            yield size, f"the size of axis {axis} of {words}", f"{name}.shape[{axis}]"
    for shape, words, name in tensors:
        for length in range(2, min(len(shape), 5)):
            for axes in itertools.combinations(range(len(shape)), length):
                product = "*".join(f"{name}.shape[{axis}]" for axis in axes)
                size = math.prod(shape[axis] for axis in axes)
                yield size, f"the size of axes {list(axes)} of {words} together", f"({product})"
