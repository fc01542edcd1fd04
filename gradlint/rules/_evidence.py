"""The evidence of a wrong derivative: measured elements, their cause, and how both read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.diagnosis._causes import CONSTANT, LINEAR, NOT_LINEAR, Cause, diagnose
from gradlint.diagnosis._evidence import EXPLAINED, Evidence, largest, unravel, wrong_elements
from gradlint.numerics._decide import Decision
from gradlint.numerics._differences import CRITICAL
from gradlint.numerics._elements import measure_elements, unexplained
from gradlint.numerics._judge import Judgement, Map, Pair
from gradlint.numerics._products import unit_roundoff, widened
from gradlint.trace._problem import OpRaised

#: Worst elements shown in a finding.
SHOWN = 3

#: Up to this many elements, all are measured under the second cotangent too.
SECOND_LOOK = 64

#: Beyond, this many of the wrong ones and this many others.
SECOND_WRONG = 8
SECOND_SAMPLE = 24

#: Units of the dtype's epsilon by which rounding may keep backward from being exactly linear
#: (heuristic: 30 roundings; float32 inside float64 stays below :data:`EXPLAINED`).
ROUNDINGS = 30.0


@dataclass
class Mismatch:
    """Everything a finding says of one wrong gradient."""

    cause: Cause | None
    numbers: dict[str, Any]
    worst: list[int] | None


def mismatch(
    function: Map, decision: Decision, place: int, names: list[str], *, seed: int
) -> Mismatch:
    """Measure the elements of a gradient that differs, and name the cause.

    Args:
        function: the map that was judged.
        decision: what was decided.
        place: position in ``decision.judgement.inputs``.
        names: names of the map's inputs.
        seed: of the sample of elements in large tensors.
    """
    judgement = decision.judgement
    item = judgement.inputs[place]
    evidence: list[Evidence] = []
    # The cotangents under which the disagreement is clearest: a clamped gradient, say, may be
    # right under others.
    clearest = sorted(range(len(item.pairs)), key=lambda k: -_clarity(item.pairs[k]))[:2]
    for rank, k in enumerate(clearest):
        claimed = judgement.gradients[k]
        elements = measure_elements(
            function,
            item.index,
            judgement.cotangents[k],
            claimed[item.index],
            seed=seed + rank,
            **_second_look(evidence[0]) if rank else {},
        )
        evidence.append(
            Evidence(
                item.index,
                names,
                [function.projected(i, g.detach()) for i, g in enumerate(claimed)],
                elements.indices,
                elements.measured,
                elements.bars,
                judgement.cotangents[k],
            )
        )
    worst = item.worst
    numbers: dict[str, Any] = {
        "directions": len(item.pairs),
        "worst_z": worst.error / worst.sigma if worst.sigma > 0.0 else float("inf"),
        "critical_z": CRITICAL,
        "relative_error": worst.error / worst.scale if worst.scale > 0.0 else float("inf"),
        "resolution": item.resolution,
    }
    index = describe_elements(evidence[0], numbers)
    cause = diagnose(evidence, response=response(function, evidence, judgement, clearest))
    if cause is not None and cause.only is not None and len(evidence[0].elements) < numel(evidence):
        k = clearest[0]
        claimed = judgement.gradients[k]
        rest = torch.ones(function.values[item.index].shape, dtype=torch.bool)
        rest[tuple(slice(None) if at is None else at for at in cause.only)] = False
        if unexplained(
            function, item.index, judgement.cotangents[k], claimed[item.index], rest, seed=seed
        ):
            cause = None  # other elements are wrong too: those measured were a sample
    return Mismatch(cause, numbers, index)


def numel(evidence: list[Evidence]) -> int:
    """Elements of the input that the evidence is about."""
    return evidence[0].own.numel()


def response(
    function: Map, evidence: Sequence[Evidence], judgement: Judgement, chosen: Sequence[int]
) -> str:
    """How backward responds to its cotangents: :data:`LINEAR`, as every vector-Jacobian product,
    where g(v − 3w) = g(v) − 3·g(w) to within rounding; :data:`CONSTANT` where g(v − 3w) is g(v)
    and g(w); else :data:`NOT_LINEAR`. (Three times: where v and w have a sign in common, v − 3w
    has the other.)"""
    if len(chosen) < 2:
        return LINEAR
    index = evidence[0].index
    mixed = [v - 3 * w for v, w in zip(*(judgement.cotangents[k] for k in chosen), strict=True)]
    try:
        found = function.pull(mixed)[index]
    except OpRaised:
        return LINEAR
    g, h = (widened(judgement.gradients[k][index]) for k in chosen)
    if found is None or found.shape != g.shape or not g.numel():
        return LINEAR
    got = widened(found)
    lowest = min((y.dtype for y in [found, *mixed]), key=lambda dtype: -unit_roundoff(dtype))
    share = max(EXPLAINED, ROUNDINGS * unit_roundoff(lowest))
    true = max(largest(item.measured) for item in evidence)
    allowed = share * max(float((g.abs() + 3.0 * h.abs()).max()), true)
    if bool(((got - (g - 3.0 * h)).abs() <= allowed).all()):
        return LINEAR
    same = ((got - g).abs() <= allowed) & ((h - g).abs() <= allowed)
    return CONSTANT if bool(same.all()) else NOT_LINEAR


def _clarity(pair: Pair) -> float:
    if pair.h <= 0.0:
        return 0.0
    return pair.error / pair.bar if pair.bar > 0.0 else float("inf")


def _second_look(first: Evidence) -> dict[str, Any]:
    """How the second cotangent is looked at: it only tests hypotheses, and need not search for
    wrong elements that are known."""
    wrong = first.elements[wrong_elements(first)][:SECOND_WRONG].tolist()
    if first.own.numel() <= SECOND_LOOK or not wrong:
        return {"limit": SECOND_LOOK}
    return {"limit": SECOND_LOOK, "known": wrong, "sampled": SECOND_SAMPLE}


def describe_elements(evidence: Evidence, numbers: dict[str, Any]) -> list[int] | None:
    """Put the worst elements and the counts into ``numbers``; returns the worst index."""
    shape = tuple(evidence.own.shape)
    wrong = wrong_elements(evidence)
    numbers["differing"] = int(wrong.sum())
    numbers["measured_elements"] = int(wrong.numel())
    numbers["numel"] = int(evidence.own.numel())
    own = evidence.own.reshape(-1)[evidence.elements.to(evidence.own.device)].cpu()
    error = (own - evidence.measured).abs()
    error = torch.where(torch.isfinite(error), error, torch.zeros_like(error))
    if error.numel() == 0:
        return None
    order = torch.argsort(error, descending=True)[:SHOWN].tolist()
    numbers["elements"] = [
        {
            "index": list(unravel(int(evidence.elements[k]), shape)),
            "returned": plain_number(own[k]),
            "measured": plain_number(evidence.measured[k]),
            "error": float(error[k]),
        }
        for k in order
        if float(error[k]) > 0.0
    ]
    return list(unravel(int(evidence.elements[order[0]]), shape))


def plain_number(value: torch.Tensor) -> float | str:
    """A scalar tensor as a float, or as text where it is complex."""
    found = value.item()
    return f"{found:.6g}" if isinstance(found, complex) else float(found)
