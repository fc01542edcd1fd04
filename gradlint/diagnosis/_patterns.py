"""Describe what the wrong elements have in common."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import EXPLAINED, Evidence, at, largest, wrong_elements
from gradlint.numerics.pattern import BORDER, DIAGONAL, PRODUCT, UPPER, Pattern, Pick, pattern_of

#: If more than this share of the elements is wrong, a pattern explains nothing (heuristic: even
#: with a wrong formula, a slice at the edge is often right).
MOST_WRONG = 0.7

#: Names of the first two axes of a matrix.
ROWS = ("row", "column")

#: Indices along an axis from which on it is no chance that only the first and the last are wrong:
#: they are one of ten pairs of five (heuristic, as MOST_CHANCE of causes).
FEWEST_WITH_ENDS = 5

#: How words about several rows, columns or indices begin.
_PLURALS = ("rows ", "columns ", "indices ", "the first and the last ")


def pattern_cause(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The pattern of the wrong elements if all were measured; None if they form no pattern."""
    first = evidence[0]
    shape = tuple(first.own.shape)
    complete = [item for item in evidence if item.complete and bool(item.good.all())]
    if not complete or not shape:
        return None
    wrong = torch.zeros(first.own.numel(), dtype=torch.bool)
    neutral = torch.ones(first.own.numel(), dtype=torch.bool)
    for item in complete:
        wrong |= wrong_elements(item)
        top = max(largest(item.measured), largest(item.own))
        size = torch.maximum(at(item, item.own).abs(), item.measured.abs())
        neutral &= size <= torch.clamp(item.bars, min=EXPLAINED * top)
    if not 0 < int(wrong.sum()) <= MOST_WRONG * wrong.numel():
        return None
    found = pattern_of(wrong.reshape(shape), (neutral & ~wrong).reshape(shape))
    return None if found is None else worded(found, name, int(wrong.sum()))


def worded(pattern: Pattern, name: str, count: int | None = None) -> Cause | None:
    """The cause that only the elements of ``pattern`` are wrong.

    Args:
        count: number of wrong elements, if all are known.
    """
    shape, picks = pattern.shape, pattern.picks
    share = float(pattern.mask().double().mean())
    if share > MOST_WRONG:
        return None
    single = all(
        size == 1 or _index(pick) is not None for pick, size in zip(picks, shape, strict=True)
    )
    if (single and pattern.kind == PRODUCT) or count == 1:
        where = [_index(pick) or 0 for pick in picks]
        return Cause(
            "one-element",
            f"one-element: only element {where} of `{name}` is wrong",
            f"look at how backward treats element {where} (a boundary, an index, a leftover)",
        )
    if pattern.kind == BORDER:
        axes = " and ".join(str(axis) for axis in pattern.axes)
        return Cause(
            "boundary",
            f"boundary: only the border of `{name}` over axes {axes} is wrong: its first and last "
            "slices",
            "look at how backward treats the edges: padding, halos, a loop that starts at 1",
        )
    if pattern.kind == DIAGONAL:
        return _diagonal(pattern, name)
    if pattern.kind != PRODUCT:
        side = "above" if pattern.kind == UPPER else "below"
        return Cause(
            "block",
            f"block: only the elements {side} the diagonal of axes {list(pattern.axes)} of "
            f"`{name}` are wrong",
            f"look at how backward treats the {'upper' if side == 'above' else 'lower'} triangle: "
            "a triangular mask where none belongs, or a missing half of a symmetric gradient",
        )
    return _product(pattern, name)


def _diagonal(pattern: Pattern, name: str) -> Cause:
    a, b = pattern.axes
    words = "the diagonal" if pattern.offset == 0 else f"the diagonal {pattern.offset:+d}"
    over = "" if len(pattern.shape) == 2 else f" of axes {a} and {b}"
    return Cause(
        "diagonal",
        f"diagonal: only {words}{over} of `{name}` is wrong",
        "look at how backward treats elements whose two indices are equal: a diagonal that was "
        "masked, counted twice, or not counted",
    )


def _product(pattern: Pattern, name: str) -> Cause:
    chosen = [(axis, pick) for axis, pick in enumerate(pattern.picks) if pick is not None]
    chosen = [(axis, pick) for axis, pick in chosen if pattern.shape[axis] > 1]
    words = " in ".join(_words(axis, pick, pattern.shape) for axis, pick in chosen)
    slugs = [_slug(pick, pattern.shape[axis]) for axis, pick in chosen]
    for slug in ("periodic", "boundary", "block", "one-slice"):
        if slug in slugs:
            break
    axis, pick = chosen[slugs.index(slug)]
    if slug == "one-slice" and len(chosen) == 1:
        number = _index(pick)
        last = pattern.shape[axis] - 1
        named = "last" if number == last else "first" if number == 0 else f"number {number}"
        return Cause(
            "one-slice",
            f"one-slice: only index {number} ({named}) along axis {axis} of `{name}` is wrong"
            + _aside(words),
            f"look at how backward treats index {number} of axis {axis}",
        )
    verb = "are" if words.startswith(_PLURALS) else "is"
    few = isinstance(pick, tuple) and pattern.shape[axis] < FEWEST_WITH_ENDS
    helps = {
        "one-slice": "look at how backward treats {where}",
        "periodic": "look at strides and loop steps in backward: {where} may be skipped or "
        "written twice",
        "boundary": "look at how backward treats the edges: padding, halos, a loop that starts at "
        "1; here {where}",
        "block": "look at block sizes and bounds in backward: {where} may be skipped or "
        "written twice",
    }
    # What the right ones between have in common may as well be their values.
    chance = f": the first and the last of {pattern.shape[axis]}, which may be chance"
    return Cause(
        slug,
        f"{slug}: only {words} of `{name}` {verb} wrong{chance if few else ''}",
        helps[slug].format(where=words),
    )


def _slug(pick: Pick, size: int) -> str:
    if isinstance(pick, tuple):
        return "boundary"
    assert pick is not None
    if len(pick) == 1:
        return "one-slice"
    return "periodic" if pick.step > 1 else "block"


def _words(axis: int, pick: Pick, shape: Sequence[int]) -> str:
    """ "row 3", "the last column", "every odd row", "rows >= 32", "indices 2 to 7 of axis 1"."""
    size = shape[axis]
    matrix = len(shape) == 2
    noun = ROWS[axis] if matrix else "index"
    plural = f"{noun}s" if matrix else "indices"
    over = "" if matrix else f" along axis {axis}"
    if isinstance(pick, tuple) and size < FEWEST_WITH_ENDS:
        return f"{plural} {' and '.join(map(str, pick))}{over}"
    if isinstance(pick, tuple):
        return f"the first and the last {noun}{over}"
    assert pick is not None
    if len(pick) == 1:
        if pick.start in (0, size - 1):
            return f"the {'first' if pick.start == 0 else 'last'} {noun}{over}"
        return f"{noun} {pick.start}{over}"
    if pick.step == 2:
        return f"every {'even' if pick.start == 0 else 'odd'} {noun}{over}"
    if pick.step > 2:
        return f"every {_ordinal(pick.step)} {noun}{over}, from {pick.start} on"
    if pick.stop == size:
        return f"{plural} >= {pick.start}{over}"
    if pick.start == 0:
        return f"{plural} < {pick.stop}{over}"
    return f"{plural} {pick.start} to {pick.stop - 1}{over}"


def _aside(words: str) -> str:
    return f": {words}" if words.startswith("the ") and words.endswith(ROWS) else ""


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number // 10 % 10 != 1 else "th"
    return f"{number}{ending}"


def _index(pick: Pick) -> int | None:
    return pick.start if isinstance(pick, range) and len(pick) == 1 else None
