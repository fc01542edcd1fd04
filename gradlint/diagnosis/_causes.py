"""From a mismatch to its likely cause.

Each hypothesis turns what backward returned into what it should have returned if that were the
only fault; it explains the evidence if it then agrees with every measurement, under independent
cotangents. Hypotheses that explain it equally well are all named, the most specific one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradlint.diagnosis import _order, _whole
from gradlint.diagnosis._altered import altered_causes
from gradlint.diagnosis._cause import Cause, together
from gradlint.diagnosis._evidence import (
    BARS,
    EXPLAINED,
    Evidence,
    Fit,
    agrees,
    at,
    largest,
    unravel,
    wrong_elements,
)
from gradlint.diagnosis._factors import recognised
from gradlint.diagnosis._hypothesis import Hypothesis, surviving
from gradlint.diagnosis._patterns import pattern_cause, worded
from gradlint.diagnosis._response import (
    CONSTANT,
    LINEAR,
    NOT_LINEAR,
    Response,
    added,
    ignores,
    response_cause,
)
from gradlint.diagnosis._value_ranges import range_cause
from gradlint.numerics._pattern import Pattern
from gradlint.numerics._reaction import Reaction

__all__ = [
    "CONSTANT",
    "LINEAR",
    "NOT_LINEAR",
    "Cause",
    "Evidence",
    "Response",
    "diagnose",
    "recognised",
    "unravel",
    "whole",
    "wrong_elements",
]

#: Slopes at least that a hypothesis must explain where no element was measured.
FEWEST = 3


def diagnose(
    evidence: Sequence[Evidence],
    *,
    response: Response | str = LINEAR,
    pattern: Pattern | None = None,
    reactions: Sequence[Reaction] = (),
    outputs: Sequence[str] = (),
    right: Sequence[int] = (),
) -> Cause | None:
    """The causes that explain all of ``evidence``, as one; None where nothing does.

    Args:
        evidence: under independent cotangents.
        response: how backward was seen to respond to further cotangents. Where it is not linear
            in them, what explains two need not explain a third, and only that is said.
        pattern: the wrong elements of a tensor too large to measure whole, where they are known.
        reactions: J·u along independent directions.
        outputs: names of the outputs.
        right: positions of the inputs whose gradients were found right.
    """
    usable = [item for item in evidence if item.usable]
    if not usable or agrees(usable):
        return None  # the bars are too wide to tell right from wrong, let alone why
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
    regular = worded(pattern, name) if pattern is not None else pattern_cause(usable, name)
    found = [
        _passed_on(usable, name) or _returned_twice(usable, right) or ignores(usable, name),
        range_cause(usable, name),
        regular,
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


def _passed_on(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """grad_output itself is returned although the function is no identity."""
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
    """The gradient of another input, where that is right."""
    first = evidence[0]
    name = first.names[first.index]
    for other in right:
        if all(torch.equal(item.claimed[other], item.own) for item in evidence):
            other_name = first.names[other]
            return Cause(
                "swapped",
                f"swapped: the gradient of `{other_name}` is returned for `{name}` too",
                f"return the gradient of `{name}` itself: what is returned now is right for "
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
