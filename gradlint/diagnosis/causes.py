"""From a mismatch to its likely cause.

Each hypothesis turns the returned gradient into the one that backward should have returned if a
certain fault were the only one. It explains the evidence if the result agrees with every
measurement, under independent cotangents. Hypotheses that explain it equally well are all named,
the most specific one first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from gradlint.diagnosis import _order, _whole
from gradlint.diagnosis._altered import altered_causes
from gradlint.diagnosis._arguments import factors, numbers, repeated_index
from gradlint.diagnosis._hypothesis import Hypothesis, surviving
from gradlint.diagnosis._patterns import pattern_cause, worded
from gradlint.diagnosis._pointed import pointed_cause
from gradlint.diagnosis.cause import Cause, together
from gradlint.diagnosis.evidence import (
    BARS,
    EXPLAINED,
    MOST_CHANCE,
    Evidence,
    Fit,
    agrees,
    at,
    largest,
    wrong_and_right,
)
from gradlint.diagnosis.response import (
    LINEAR,
    Response,
    added,
    ignores,
    response_cause,
)
from gradlint.numerics.directional_response import Reaction
from gradlint.numerics.pattern import Pattern
from gradlint.numerics.products import widened

#: Kinds of range tried for each tensor: below or above a bound, for values and for magnitudes, and
#: within or outside of two bounds.
FORMS = 6

#: If no element was measured, a hypothesis must explain at least this many slopes.
FEWEST = 3


def range_cause(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The range of values in which a gradient is wrong, and outside which it is right; None if no
    such range exists, or if it may be due to chance.

    A branch of forward that backward lacks, or takes under another condition, makes exactly those
    elements wrong whose values lie in a range. Their positions are scattered, or form a pattern by
    chance only.

    Args:
        evidence: with the same elements measured under independent cotangents, or none measured.
        name: name of the input whose gradient is examined.
    """
    known = wrong_and_right(evidence)
    if known is None or not known[0].values:
        return None
    first, wrong, right = known
    if not bool(wrong.any()) or not bool(right.any()):
        return None
    tensors = list(_candidates(first))
    count, bad = int(wrong.sum() + right.sum()), int(wrong.sum())
    # The choices of wrong elements among thousands are more than a float can hold.
    if math.comb(count, bad) < FORMS * len(tensors) / MOST_CHANCE:
        return None
    for owner, values in tensors:
        words = _range(values[wrong], values[right], owner, numbers(first.arguments))
        if words:
            return Cause(
                "value-range",
                f"value-range: wrong for the {bad} of {count} elements of `{name}` {words}, "
                "right for the others",
                f"compare forward and backward for elements {words}: backward may lack a branch, "
                "mask or bound of forward, or apply it differently",
            )
    return None


def _candidates(item: Evidence) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and measured elements of the inputs with the gradient's shape, its own input first."""
    own = item.values[item.index]
    order = sorted(range(len(item.values)), key=lambda k: k != item.index)
    for k in order:
        value = item.values[k]
        if value.shape == own.shape and not value.is_complex():
            flat = widened(value).reshape(-1)
            yield item.names[k], flat[item.elements.to(flat.device)].cpu()


def _range(
    wrong: torch.Tensor, right: torch.Tensor, name: str, numbers: Mapping[str, float]
) -> str:
    """Words for the bounds that separate all values of ``wrong`` from those of ``right``, or "".

    Args:
        numbers: arguments that are single numbers, which are named where a bound may be one.
    """

    def bound(low: float, high: float) -> str:
        return f"a bound between {low:.3g} and {high:.3g}{_named(low, high, numbers)}"

    low, high = _ends(wrong)
    if high < float(right.min()):
        top = float(right.min())
        return f"where `{name}` is " + (
            "negative" if high < 0.0 < top else f"below {bound(high, top)}"
        )
    if low > float(right.max()):
        top = float(right.max())
        return f"where `{name}` is " + (
            "positive" if top < 0.0 < low else f"above {bound(top, low)}"
        )
    small, large = wrong.abs(), right.abs()
    for side, less, more in (("below", small, large), ("above", large, small)):
        if float(less.max()) < float(more.min()):
            return f"where |{name}| is {side} {bound(float(less.max()), float(more.min()))}"
    for inner, outer, words in ((wrong, right, "within"), (right, wrong, "outside of")):
        low, high = _ends(inner)
        below, above = outer[outer < low], outer[outer > high]
        if len(below) and len(above) and len(below) + len(above) == len(outer):
            first, last = float(below.max()), float(above.min())
            return (
                f"where `{name}` is {words} a range that begins at {bound(first, low)[2:]} and "
                f"ends at {bound(high, last)[2:]}"
            ).replace("at bound", "at a bound")
    return ""


def _ends(values: torch.Tensor) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _named(low: float, high: float, numbers: Mapping[str, float]) -> str:
    """The argument whose value, negative, or distance from 1 lies between ``low`` and ``high``,
    where that is only one."""
    found = [
        f"{shown} is {value:g}"
        for name, number in numbers.items()
        for shown, value in (
            (f"`{name}`", number),
            (f"-{name}", -number),
            (f"1-{name}", 1 - number),
        )
        if low <= value <= high
    ]
    return f" ({found[0]})" if len(found) == 1 else ""


def diagnose(
    evidence: Sequence[Evidence],
    *,
    response: Response | str = LINEAR,
    pattern: Pattern | None = None,
    reactions: Sequence[Reaction] = (),
    outputs: Sequence[str] = (),
    right: Sequence[int] = (),
) -> Cause | None:
    """The causes that explain all of ``evidence``, combined into one; None if nothing does.

    Args:
        evidence: under independent cotangents.
        response: how backward responds to further cotangents. If it is not linear in them, what
            explains two need not explain a third, so only the nonlinearity is reported.
        pattern: the wrong elements, if known, of a tensor too large to be measured completely.
        reactions: J·u along independent directions.
        outputs: what flows back into each output, in words: "the grad_output of `y`".
        right: positions of the inputs whose gradients were found right.
    """
    usable = [item for item in evidence if item.usable]
    if not usable or agrees(usable):
        return None  # the error bars are too wide even to show that the gradient is wrong
    if isinstance(response, str):
        response = Response(response)
    name = usable[0].names[usable[0].index]
    if max(largest(item.own) for item in usable) == 0.0:
        return Cause(
            "zero",
            f"zero: backward returns zeros for `{name}`, but the function depends on it",
            f"return the gradient with respect to `{name}`",
        )
    if all(_vanishes(item) for item in usable):
        return Cause(
            "straight-through",
            f"straight-through: forward is piecewise constant in `{name}`, so its derivative is "
            "zero; backward returns something else",
            f'if a surrogate is intended, declare it: surrogate = {{"{name}": "<expression>"}} '
            "on the class, or `surrogate:` in a spec",
        )
    if response.kind != LINEAR:
        return response_cause(usable, response, name)
    causes = whole(usable, name)
    if causes:
        return together([hypothesis.cause(fit) for hypothesis, fit in causes])
    found: list[Cause | None] = [_shifted(usable, name)]
    if not any(found):
        regular = worded(pattern, name) if pattern is not None else pattern_cause(usable, name)
        repeated = repeated_index(usable, name)
        if repeated is None and regular is not None:
            # Of few elements either may be chance; only one of them says why they are wrong.
            repeated = repeated_index(usable, name, by_chance=True)
            regular = regular if repeated is None else None
        # What an argument tells apart lies in a range of values, or in a pattern, by chance only.
        pointed = pointed_cause(usable, name) if repeated is None else None
        found = [
            _passed_on(usable, name) or _returned_twice(usable, right) or ignores(usable, name),
            repeated,
            pointed or range_cause(usable, name),
            None if pointed else regular,
        ]
    if not any(found):
        found = [*altered_causes(usable, reactions, name, outputs)]
    if not any(found) and reactions:
        mirrored = surviving(_order.mirrored(usable[0], name), usable)
        found = [hypothesis.cause(fit) for hypothesis, fit in mirrored]
    if not any(found):
        found = [added(usable, name)]
    return together([cause for cause in found if cause is not None])


def whole(evidence: Sequence[Evidence], name: str) -> list[tuple[Hypothesis, Fit]]:
    """Faults of the whole gradient that explain all of ``evidence``, the most specific first."""
    first = max(evidence, key=lambda item: (int(item.good.sum()), item.move is not None))
    ordered = [first, *(item for item in evidence if item is not first)]
    found = surviving(_hypotheses(first, evidence, name), ordered)
    few = not any(bool(item.good.any()) for item in evidence)
    return [(one, fit) for one, fit in found if not few or fit.count >= FEWEST]


def _hypotheses(first: Evidence, evidence: Sequence[Evidence], name: str) -> Iterator[Hypothesis]:
    shape = tuple(first.own.shape)
    yield _whole.sign(name)
    factor = _whole.scaled(evidence, name)
    if factor is not None:
        yield factor
    yield from _order.reordered_axes(shape, name)
    if first.own.is_complex():
        yield from _whole.conjugate(name)
    yield from _whole.swapped(first, name)
    yield from _order.flipped(shape, name)
    yield from _order.rolled(first, name)
    yield from _order.rearranged(first, name)
    yield from factors(first, name)


def _shifted(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """A shift along an axis, of which the slices that were shifted out say nothing."""
    complete = [item for item in evidence if item.complete]
    found = surviving(_order.shifted(evidence[0], name), complete)
    if not found:
        return None
    hypothesis, fit = found[0]
    return hypothesis.cause(replace(fit, count=1))


def _passed_on(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """grad_output itself is returned although the function is not the identity."""
    for item in evidence:
        if not any(
            v.shape == item.own.shape
            and v.is_complex() == item.own.is_complex()
            and torch.equal(v.to(item.own.dtype), item.own)
            for v in item.cotangents
        ):
            return None
    return Cause(
        "straight-through",
        f"straight-through: grad_output is returned unchanged for `{name}`, but the derivative of "
        "forward is not 1",
        f"multiply grad_output by the derivative with respect to `{name}`; if a straight-through "
        f'estimator is intended, declare it: surrogate = {{"{name}": "grad_output"}} on the class',
    )


def _returned_twice(evidence: Sequence[Evidence], right: Sequence[int]) -> Cause | None:
    """The gradient of another input is returned, and is right for that one."""
    first = evidence[0]
    name = first.names[first.index]
    for other in right:
        if all(torch.equal(item.claimed[other], item.own) for item in evidence):
            other_name = first.names[other]
            return Cause(
                "swapped",
                f"swapped: the gradient of `{other_name}` is also returned for `{name}`",
                f"return the gradient of `{name}` itself: the returned one is right for "
                f"`{other_name}`",
            )
    return None


def _vanishes(item: Evidence) -> bool:
    """Whether the measured derivative is zero everywhere, while backward returned something."""
    good = item.good
    if not bool(good.any()):
        return item.move is not None and abs(item.slope) <= item.slope_bar
    size = item.measured[good].abs()
    negligible = EXPLAINED * largest(item.own)
    return bool((size <= torch.clamp(BARS * item.bars[good], max=negligible)).all()) and bool(
        at(item, item.own).abs().max() > 0.0 or not item.complete
    )
