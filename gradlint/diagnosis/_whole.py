"""Faults of a whole gradient: wrong sign, scale or conjugate, or another input's gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from gradlint.diagnosis._arguments import reductions
from gradlint.diagnosis._factors import meaning, recognised
from gradlint.diagnosis._hypothesis import Hypothesis
from gradlint.diagnosis.evidence import EXPLAINED, Evidence, at, fit_of
from gradlint.numerics.products import real_dot

#: Largest relative deviation at which a factor still counts as recognised (heuristic: float32).
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
                denominator += claimed * claimed
    if denominator == 0.0 or numerator == 0.0:
        return None
    factor = numerator / denominator
    if factor == 0.0 or not math.isfinite(factor):
        return None  # gradients so large that their squares overflow: memory never written, say
    if abs(factor + 1.0) <= EXPLAINED:
        return None  # this is the hypothesis `sign`
    fit = fit_of(evidence, [item.own * factor for item in evidence])
    if fit is None:
        return None
    slack = min(ROUGH, max(EXPLAINED, 3.0 * fit.misfit))
    shown = recognised(factor, evidence, slack=slack)
    clause = meaning(factor, evidence, slack=slack)
    # Another reduction divides by something else, or by nothing.
    within = reductions(evidence[0].arguments) if clause else ""
    return Hypothesis(
        "scaled",
        f"the returned gradient times {shown} agrees",
        f"multiply the gradient of `{name}` by {shown}" + (f" where {within}" if within else ""),
        lambda item: item.own * factor,
        f" ({clause})" if clause else "",
    )


def conjugate(name: str) -> Iterator[Hypothesis]:
    """The conjugate of the returned gradient, or of the derivative with which it multiplies v."""
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
    """conj(g(conj(v))), which turns v·d into v·conj(d); elementwise functions need no call."""
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
