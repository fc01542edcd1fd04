"""From a mismatch to its likely cause.

Each hypothesis turns what backward returned into what it should have returned if that were the
only fault; it explains the evidence if it then agrees with every measured element, under two
independent cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

from gradlint.diagnosis._evidence import (
    BARS,
    EXPLAINED,
    Evidence,
    at,
    largest,
    misfit_of,
    unravel,
    wrong_elements,
)

__all__ = [
    "CONSTANT",
    "LINEAR",
    "NOT_LINEAR",
    "Cause",
    "Evidence",
    "diagnose",
    "recognised",
    "unravel",
    "wrong_elements",
]

#: How backward responds to its cotangents.
LINEAR, CONSTANT, NOT_LINEAR = "linear", "constant", "not linear"


@dataclass(frozen=True)
class Cause:
    """A named cause.

    Args:
        slug: as in the JSON contract.
        text: one line for a reader, with how well it explains the evidence.
        help: what to change; ``{expression}`` stands for the source of the returned gradient.
        misfit: largest deviation left, relative to the largest measured element.
        only: the elements that the cause says are wrong and no others: one index an axis, None
            for all of the axis; or None where the cause says nothing of the sort.
    """

    slug: str
    text: str
    help: str
    misfit: float = 0.0
    only: tuple[int | None, ...] | None = None


def diagnose(evidence: Sequence[Evidence], *, response: str = LINEAR) -> Cause | None:
    """The first cause, in order of specificity, that explains all of ``evidence``; else None.

    Args:
        evidence: under independent cotangents.
        response: how backward was seen to respond to further cotangents. Where it is not linear
            in them, what explains two need not explain a third, and only that is said.
    """
    usable = [item for item in evidence if bool(torch.isfinite(item.measured).any())]
    if not usable or misfit_of(usable, [item.own for item in usable]) is not None:
        return None  # the bars are too wide to tell right from wrong, let alone why
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
    if response == CONSTANT:
        return _ignores(usable, name)
    if response == NOT_LINEAR:
        return _not_linear(name)
    for hypothesis in (
        _sign,
        _scaled,
        _transposed,
        _conjugate,
        _swapped,
        _passed_on,
        _ignores,
    ):
        cause = hypothesis(usable, name)
        if cause is not None:
            return cause
    return _pattern(usable, name)


# -- hypotheses ------------------------------------------------------------------------------------


def _sign(evidence: Sequence[Evidence], name: str) -> Cause | None:
    misfit = misfit_of(evidence, [-item.own for item in evidence])
    if misfit is None:
        return None
    return Cause(
        "sign",
        f"sign: taken with the opposite sign it agrees{_to(misfit)}",
        f"return -({{expression}}) for `{name}`",
        misfit,
    )


def _scaled(evidence: Sequence[Evidence], name: str) -> Cause | None:
    numerator = denominator = 0.0
    for item in evidence:
        own, measured = at(item, item.own), item.measured
        good = torch.isfinite(measured.abs())
        numerator += float((own[good].conj() * measured[good]).real.sum())
        denominator += float((own[good].conj() * own[good]).real.sum())
    if denominator == 0.0 or numerator == 0.0:
        return None
    factor = numerator / denominator
    misfit = misfit_of(evidence, [item.own * factor for item in evidence])
    if misfit is None:
        return None
    shown = recognised(factor, evidence)
    return Cause(
        "scaled",
        f"scaled: the returned gradient times {shown} agrees{_to(misfit)}",
        f"multiply the gradient of `{name}` by {shown}",
        misfit,
    )


def _transposed(evidence: Sequence[Evidence], name: str) -> Cause | None:
    shape = evidence[0].own.shape
    if len(shape) < 2 or shape[-1] * shape[-2] <= 1:
        return None
    if shape[-1] == shape[-2]:
        candidates = [item.own.mT for item in evidence]
    else:  # a (K, N) result squeezed into (N, K) by a reshape
        candidates = [item.own.reshape(*shape[:-2], shape[-1], shape[-2]).mT for item in evidence]
    misfit = misfit_of(evidence, candidates)
    if misfit is None:
        return None
    return Cause(
        "transposed",
        f"transposed: taken as .mT it agrees{_to(misfit)}",
        f"return ({{expression}}).mT for `{name}`",
        misfit,
    )


def _conjugate(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The conjugate of all that was returned, or of its factor beside grad_output, v∘d → v∘conj(d)
    (of an elementwise function, whose cotangent has the gradient's shape)."""
    if not evidence[0].own.is_complex():
        return None
    misfit = misfit_of(evidence, [item.own.conj() for item in evidence])
    if misfit is None:
        misfit = misfit_of(evidence, [_factor_conjugated(item) for item in evidence])
    if misfit is None:
        return None
    return Cause(
        "conjugate",
        f"conjugate: with its complex conjugate it agrees{_to(misfit)}",
        f"return grad_output times the conjugate of the derivative for `{name}`: PyTorch's "
        "gradients are conjugate Wirtinger derivatives, so `{expression}` lacks a .conj()",
        misfit,
    )


def _factor_conjugated(item: Evidence) -> torch.Tensor:
    own = item.own
    for v in item.cotangents:
        if v.is_complex() and v.shape == own.shape and bool((v != 0).all()):
            return v * (own / v).conj()
    return own


def _swapped(evidence: Sequence[Evidence], name: str) -> Cause | None:
    first = evidence[0]
    for other, other_name in enumerate(first.names):
        if other == first.index or first.claimed[other].shape != first.own.shape:
            continue
        misfit = misfit_of(evidence, [item.claimed[other] for item in evidence])
        if misfit is not None:
            return Cause(
                "swapped",
                f"swapped: what is returned for `{other_name}` is the gradient of `{name}`"
                f"{_to(misfit)}",
                f"return the gradients in the order of forward's arguments: exchange those of "
                f"`{name}` and `{other_name}`",
                misfit,
            )
    return None


def _passed_on(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """grad_output itself is returned although the function is no identity."""
    for item in evidence:
        if not any(
            v.shape == item.own.shape and torch.equal(v.to(item.own.dtype), item.own)
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


def _ignores(evidence: Sequence[Evidence], name: str) -> Cause | None:
    if len(evidence) < 2:
        return None
    first, second = evidence[0], evidence[1]
    same = torch.allclose(first.own, second.own, rtol=1e-12, atol=0.0)
    if not same or all(
        torch.equal(a, b) for a, b in zip(first.cotangents, second.cotangents, strict=True)
    ):
        return None
    return Cause(
        "ignores-grad-output",
        f"ignores-grad-output: the gradient of `{name}` is the same whatever grad_output is",
        "multiply by grad_output (backward returns a vector-Jacobian product, not a derivative)",
    )


def _not_linear(name: str) -> Cause:
    return Cause(
        "not-linear",
        f"not-linear: the gradient of `{name}` is not linear in grad_output, as a vector-Jacobian "
        "product is: something clips, rectifies or rounds it, adds to it, or keeps state between "
        "calls",
        "multiply grad_output by the derivative and do nothing else to it: clip gradients in a "
        "hook or in the optimizer",
    )


def _pattern(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """What the wrong elements have in common, when most elements are right."""
    shape = tuple(evidence[0].own.shape)
    wrong = {int(e) for item in evidence for e in item.elements[wrong_elements(item)]}
    known = {int(e) for item in evidence for e in item.elements}
    if not wrong or len(wrong) > 0.5 * len(known) or not shape:
        return None
    positions = [unravel(e, shape) for e in sorted(wrong)]
    if len(wrong) == 1:
        where = list(positions[0])
        return Cause(
            "one-element",
            f"one-element: only element {where} of `{name}` is wrong",
            f"look at how backward treats element {where} (a boundary, an index, a leftover)",
            only=positions[0],
        )
    for axis in range(len(shape)):
        values = {position[axis] for position in positions}
        if len(values) == 1 and shape[axis] > 1:
            number = values.pop()
            last = shape[axis] - 1
            named = "last" if number == last else "first" if number == 0 else f"number {number}"
            return Cause(
                "one-slice",
                f"one-slice: only index {number} ({named}) along axis {axis} of `{name}` is wrong",
                f"look at how backward treats index {number} of axis {axis}",
                only=tuple(number if place == axis else None for place in range(len(shape))),
            )
    return None


# -- helpers ---------------------------------------------------------------------------------------


def recognised(factor: float, evidence: Sequence[Evidence]) -> str:
    """``factor`` in words where it is a simple fraction, or a size, or one over a size."""
    fraction = Fraction(factor).limit_denominator(16)
    if abs(float(fraction) - factor) <= EXPLAINED * abs(factor) and fraction != 0:
        return str(fraction)
    sizes = {evidence[0].own.numel(), *evidence[0].own.shape}
    for v in evidence[0].cotangents:
        sizes |= {v.numel(), *v.shape}
    for size in sorted(sizes):
        for value, shown in ((size, f"{size}"), (1 / size if size else 0, f"1/{size}")):
            if value and abs(value - factor) <= EXPLAINED * abs(factor):
                return shown
    return f"{factor:.6g}"


def _vanishes(item: Evidence) -> bool:
    """Whether the measured derivative is zero everywhere, while backward returned something."""
    good = torch.isfinite(item.measured.abs())
    size = item.measured[good].abs()
    negligible = EXPLAINED * largest(item.own)
    return bool((size <= torch.clamp(BARS * item.bars[good], max=negligible)).all())


def _to(misfit: float) -> str:
    return f" to {misfit:.0e}" if misfit > 0.0 else " exactly"
