"""Wrong elements told by their values: all of one sign, or beyond or below a bound, and no others.

A branch of forward that backward lacks, or whose condition is another one there, is wrong exactly
where values are in a range. By position these elements are scattered, or form a pattern by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from gradlint.diagnosis._cause import Cause
from gradlint.diagnosis._evidence import EXPLAINED, Evidence, at, largest, wrong_elements
from gradlint.numerics._products import widened

#: Ranges tried of each tensor: below and above a bound, of the values and of their magnitudes.
FORMS = 4

#: Up to this chance that elements wrong for another reason are a range of values too, the range is
#: named (heuristic: 2 of 12 elements are, by 0.06, and 1 of 12 is not).
MOST_CHANCE = 0.1


def range_cause(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The range of values at which a gradient is wrong, and outside of which it is right; None
    without one, or where chance would explain it.

    Args:
        evidence: with the same elements measured under independent cotangents, or none measured.
        name: of the input whose gradient it is.
    """
    measured = [item for item in evidence if bool(item.good.any())]
    if not measured or not measured[0].values:
        return None
    first = measured[0]
    measured = [item for item in measured if torch.equal(item.elements, first.elements)]
    wrong = torch.stack([wrong_elements(item) for item in measured]).any(0)
    right = ~wrong & torch.stack([item.good & ~_neutral(item) for item in measured]).any(0)
    if not bool(wrong.any()) or not bool(right.any()):
        return None
    tensors = list(_candidates(first))
    count, bad = int(wrong.sum() + right.sum()), int(wrong.sum())
    if FORMS * len(tensors) > MOST_CHANCE * math.comb(count, bad):
        return None
    for whose, values in tensors:
        words = _range(values[wrong], values[right], whose)
        if words:
            return Cause(
                "value-range",
                f"value-range: wrong for the {bad} of {count} elements of `{name}` {words}, "
                "right for the others",
                f"compare forward and backward for elements {words}: a branch, mask or bound of "
                "forward that backward lacks, or has otherwise",
            )
    return None


def _neutral(item: Evidence) -> torch.Tensor:
    """True for elements that are zero as returned and as measured: right under any formula."""
    top = max(largest(item.measured), largest(item.own))
    size = torch.maximum(at(item, item.own).abs(), item.measured.abs())
    return size <= torch.clamp(item.bars, min=EXPLAINED * top)


def _candidates(item: Evidence) -> Iterator[tuple[str, torch.Tensor]]:
    """The inputs of one shape with the gradient, its own first, at the measured elements."""
    own = item.values[item.index]
    order = sorted(range(len(item.values)), key=lambda k: k != item.index)
    for k in order:
        value = item.values[k]
        if value.shape == own.shape and not value.is_complex():
            flat = widened(value).reshape(-1)
            yield item.names[k], flat[item.elements.to(flat.device)].cpu()


def _range(wrong: torch.Tensor, right: torch.Tensor, name: str) -> str:
    """The side of a bound on which all values of ``wrong`` are and none of ``right``, in words."""
    if float(wrong.max()) < float(right.min()):
        low, high = float(wrong.max()), float(right.min())
        return f"where `{name}` is {_bounded('below', 'negative', low, high)}"
    if float(wrong.min()) > float(right.max()):
        low, high = float(right.max()), float(wrong.min())
        return f"where `{name}` is {_bounded('above', 'positive', low, high)}"
    small, large = wrong.abs(), right.abs()
    for side, less, more in (("below", small, large), ("above", large, small)):
        if float(less.max()) < float(more.min()):
            bound = _bound(float(less.max()), float(more.min()))
            return f"where |{name}| is {side} {bound}"
    return ""


def _bounded(side: str, sign: str, low: float, high: float) -> str:
    return sign if low < 0.0 < high else f"{side} {_bound(low, high)}"


def _bound(low: float, high: float) -> str:
    return f"a bound between {low:.3g} and {high:.3g}"
