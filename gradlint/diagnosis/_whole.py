"""Faults of a whole gradient: it has the wrong size or owner, and is right otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from gradlint.diagnosis._factors import meaning, recognised
from gradlint.diagnosis._hypothesis import Hypothesis
from gradlint.diagnosis.evidence import EXPLAINED, Evidence, at, fit_of
from gradlint.numerics.products import real_dot

#: Beyond this relative misfit of a factor (float32), only the simplest readings of it are given.
ROUGH = 1e-3


def sign(name: str) -> Hypothesis:
    """−g."""
    return Hypothesis(
        "sign",
        "taken with the opposite sign it agrees",
        f"return -({{expression}}) for `{name}`",
        lambda item: -item.own,
    )


def scaled(evidence: Sequence[Evidence], name: str) -> Hypothesis | None:
    """c·g, with c from least squares."""
    numerator = denominator = 0.0
    for item in evidence:
        good = item.good
        if bool(good.any()):
            own, measured = at(item, item.own)[good], item.measured[good]
            numerator += real_dot(own, measured)
            denominator += real_dot(own, own)
    if denominator == 0.0:
        for item in evidence:
            if item.move is not None:
                claimed = real_dot(item.own, item.move)
                numerator += claimed * item.slope
                denominator += claimed**2
    if denominator == 0.0 or numerator == 0.0:
        return None
    factor = numerator / denominator
    if abs(factor + 1.0) <= EXPLAINED:
        return None  # `sign` says the same
    fit = fit_of(evidence, [item.own * factor for item in evidence])
    if fit is None:
        return None
    slack = min(ROUGH, max(EXPLAINED, 3.0 * fit.misfit))
    shown = recognised(factor, evidence, slack=slack)
    told = meaning(factor, evidence, slack=slack)
    return Hypothesis(
        "scaled",
        f"the returned gradient times {shown} agrees",
        f"multiply the gradient of `{name}` by {shown}",
        lambda item: item.own * factor,
        f" ({told})" if told else "",
    )


def conjugate(name: str) -> Iterator[Hypothesis]:
    """The conjugate of all that was returned, or of the factor beside grad_output."""
    help_text = (
        f"return grad_output times the conjugate of the derivative for `{name}`: PyTorch's "
        "gradients are conjugate Wirtinger derivatives, so `{expression}` lacks a .conj()"
    )
    text = "with its complex conjugate it agrees"
    yield Hypothesis("conjugate", text, help_text, lambda item: item.own.conj())
    yield Hypothesis(
        "conjugate", "with the conjugate of its factor it agrees", help_text, _factor_conjugated
    )


def _factor_conjugated(item: Evidence) -> torch.Tensor | None:
    """conj(g(conj(v))): of v·d, v·conj(d). Of elementwise functions backward need not be asked."""
    own = item.own
    for v in item.cotangents:
        if v.is_complex() and v.shape == own.shape and bool((v != 0).all()):
            found = v * (own / v).conj()
            if fit_of([item], [found]) is not None:
                return found
    if item.pull is None or not any(v.is_complex() for v in item.cotangents):
        return None
    pulled = item.pull([v.conj().resolve_conj() for v in item.cotangents])
    return None if pulled is None else pulled.conj()


def swapped(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """The gradient of another input of the same shape."""
    for other, other_name in enumerate(first.names):
        if other == first.index or first.claimed[other].shape != first.own.shape:
            continue
        yield Hypothesis(
            "swapped",
            f"what is returned for `{other_name}` is the gradient of `{name}`",
            f"return the gradients in the order of forward's arguments: exchange those of "
            f"`{name}` and `{other_name}`",
            partial(_claimed, other),
        )


def _claimed(other: int, item: Evidence) -> torch.Tensor:
    return item.claimed[other]
