"""Is a small disagreement spread over all elements, or that of a few?

What is tolerated of a gradient (few digits, rounding) is relative to ‖g∘u‖, which grows with the
size of the tensor, and one wrong element among very many is small beside it. Zooming in on the
half that disagrees more, the disagreement of a few elements grows relative to ‖g∘u‖; that of all
does not.
"""

from __future__ import annotations

import math

import torch

from gradlint.numerics._bank import Probe
from gradlint.numerics._differences import LADDER, Estimate, difference, estimate
from gradlint.numerics._judge import TOLERATED, Map, Pair, along, working_bits
from gradlint.numerics._path import path_integral
from gradlint.numerics._products import norm, widened


def concentrated(function: Map, index: int, probe: Probe, pair: Pair) -> bool:
    """Whether few elements of input ``index`` make up a disagreement that is tolerable beside the
    whole gradient, and not beside their own share of it.

    Args:
        probe: the draw that disagrees; pair: what was measured along it.
    """
    if function.project is not None and function.project[index] is not None:
        return False  # elements of this input can't move alone
    x, u = function.values[index], probe.moves[index]
    worth = widened(probe.gradients[index]).abs() * widened(u).abs()
    tolerated = TOLERATED[working_bits(function, x)]
    chosen = torch.ones(x.shape, dtype=torch.bool, device=x.device)
    error = pair.error
    while True:
        size = int(chosen.sum())
        share = norm(worth * chosen)
        if size < 2 or error * math.sqrt(size) <= tolerated * share:
            return False  # even if a single typical element made it up, it would be tolerable
        halves = _halves(chosen)
        found = [_measured(function, index, u * half, probe, pair) for half in halves]
        known = [
            (abs(one.residual), one.bar, half)
            for one, half in zip(found, halves, strict=True)
            if one is not None
        ]
        if not known:
            return False
        error, bar, chosen = max(known, key=lambda one: one[0] - one[1])
        if error <= bar:
            return False
        if error > bar + tolerated * norm(worth * chosen):
            return True


def _halves(chosen: torch.Tensor) -> list[torch.Tensor]:
    rank = chosen.reshape(-1).cumsum(0).reshape(chosen.shape)
    first = chosen & (rank <= int(chosen.sum()) // 2)
    return [first, chosen & ~first]


def _measured(
    function: Map, index: int, u: torch.Tensor, probe: Probe, pair: Pair
) -> Estimate | None:
    x = function.values[index]
    if pair.method == "path":
        return path_integral(function, index, u, probe.cotangents, pair.h)
    steps = []
    for exponent in LADDER[working_bits(function, x)]:
        step = difference(
            along(function, index),
            x,
            u,
            probe.cotangents,
            probe.gradients[index],
            2.0**-exponent,
            function.rounding,
        )
        if step is not None:
            steps.append(step)
    return estimate(steps, 1.0)
