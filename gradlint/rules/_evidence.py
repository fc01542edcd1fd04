"""The evidence of a wrong derivative: measured elements, their cause, and how both read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gradlint.diagnosis._causes import Cause, Evidence, diagnose, unravel, wrong_elements
from gradlint.numerics._decide import Decision
from gradlint.numerics._differences import CRITICAL
from gradlint.numerics._elements import measure_elements
from gradlint.numerics._judge import Map

#: Worst elements shown in a finding.
SHOWN = 3

#: Elements measured under the second cotangent, which only tests hypotheses.
SECOND_LOOK = 64


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
    evidence = []
    for k in range(min(2, len(judgement.cotangents))):
        claimed = judgement.gradients[k]
        elements = measure_elements(
            function,
            item.index,
            judgement.cotangents[k],
            claimed[item.index],
            seed=seed + k,
            **({} if k == 0 else {"limit": SECOND_LOOK}),
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
    return Mismatch(diagnose(evidence), numbers, index)


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
