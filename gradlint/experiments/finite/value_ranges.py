"""Which special values an input may take, as far as its domain is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from gradlint.inputs.documentation import Range

#: Domains by their words whose values move freely, or on one side of zero: (lowest, highest,
#: whether zero belongs to it). Other words are intervals, or ties between elements that a special
#: value would break (matrices, rows, orders).
KNOWN = {
    "all reals": (-math.inf, math.inf, True),
    "nonzero": (-math.inf, math.inf, False),
    "positive": (0.0, math.inf, False),
    "nonnegative": (0.0, math.inf, True),
    "negative": (-math.inf, 0.0, False),
    "nonpositive": (-math.inf, 0.0, True),
    "above 1": (1.0, math.inf, False),
    "between 0 and 1": (0.0, 1.0, False),
    "between -1 and 1": (-1.0, 1.0, True),
}

#: Domains known to have zero as an ordinary value.
HOLD_ZERO = frozenset(words for words, (_, _, zero) in KNOWN.items() if zero)

#: Words of a domain that is not known, or that has no bounds.
FREE = ("", "all reals")

#: Domains in which equal elements have a meaning, and what they are then: rows of n elements that
#: sum to 1 hold 1/n.
ROWS = "rows sum to 1"


@dataclass(frozen=True)
class ValueRange:
    """Values that an input may take: ``low`` to ``high``, open ends; ``zero`` whether it may be
    zero; ``equal`` whether its elements may all be equal, ``rows`` whether rows sum to one;
    ``all_zero`` whether all its elements may be zero at once."""

    low: float = -math.inf
    high: float = math.inf
    zero: bool = True
    equal: bool = True
    rows: bool = False
    all_zero: bool = True

    def holds(self, value: float) -> bool:
        """Whether ``value`` may be put into the input."""
        if self.rows:
            return False
        return self.zero if value == 0.0 else self.low < value < self.high


def range_of(words: str, value: torch.Tensor) -> ValueRange:
    """The range of an input whose domain reads ``words`` ("" where it is not known)."""
    found = KNOWN.get(words)
    if found is not None:
        return ValueRange(*found)
    if words == ROWS:
        return ValueRange(0.0, 1.0, zero=False, rows=True)
    # An interval with ends of its own, or elements that depend on each other.
    if words or _is_triangular(value):
        return ValueRange(math.inf, -math.inf, zero=False, equal=False)
    # Nothing is known: positive samples may stand for scales, rates and probabilities.
    positive = value.numel() > 0 and not value.is_complex() and bool((value > 0).all())
    return ValueRange(0.0 if positive else -math.inf, math.inf, zero=True)


def within(known: ValueRange, interval: Range | None) -> ValueRange:
    """``known`` without what lies outside of a documented interval: one belongs to [0, 1], and
    does not to [0, 1)."""
    if interval is None:
        return known
    low = math.nextafter(interval.low, -math.inf) if interval.low_too else interval.low
    high = math.nextafter(interval.high, math.inf) if interval.high_too else interval.high
    return replace(
        known,
        low=max(known.low, low),
        high=min(known.high, high),
        zero=known.zero and 0.0 in interval,
    )


def _is_triangular(value: torch.Tensor) -> bool:
    """Whether matrices have nothing but zeros in one triangle, which formulas rely on."""
    if value.layout != torch.strided or value.is_nested or value.dim() < 2:
        return False
    if value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    ends = value.diagonal(dim1=-2, dim2=-1).any()
    return bool(ends) and not (bool(value.tril(-1).any()) and bool(value.triu(1).any()))
