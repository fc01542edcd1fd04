"""Recognise gradients that are zero apart from rounding, such as that of a bias before a
normalisation.

There all terms cancel, and what remains scatters like rounding: it changes completely when inputs
and cotangents move by a unit in the last place. A gradient that is merely tiny (that of a saturated
softmax) does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.numerics.gradient_scale import weigh
from gradlint.numerics.judge import Judgement
from gradlint.numerics.map import Map
from gradlint.numerics.pair import CLEARLY
from gradlint.numerics.products import norm, unit_roundoff, widened
from gradlint.numerics.verdict import OWN_DIGITS, InputJudgement

#: Number of times that inputs and cotangents are moved by single units; the gradient must change in
#: one of them. Several are needed, because what remains of a short sum may be the same twice.
TRIALS = 4

#: Share of itself by which a gradient made of rounding changes at least (heuristic: two independent
#: draws differ by √2 of their size on average).
CHANGED = 0.5


def as_zero(
    function: Map, item: InputJudgement, judgement: Judgement, bits: int
) -> InputJudgement | None:
    """``item`` with its gradient taken as zero, so that its resolving power is relative to a share
    of the outputs; None if the gradient is not known to be zero.

    Args:
        function: the map that was judged.
        item: an input that agrees, but whose gradient is smaller than the rounding of the outputs.
        judgement: the judgement that contains ``item``.
        bits: significand bits of the lowest dtype involved.
    """
    if any(pair.h <= 0.0 or abs(pair.measured) > CLEARLY * pair.bar for pair in item.pairs):
        return None
    probe = judgement.probe(0)
    unit = max(unit_roundoff(y.dtype) for y in function.outputs)
    move, index = probe.moves[item.index], item.index
    level = OWN_DIGITS * unit * item.kappa * weigh(function, index, probe, bits, unit).weighed
    claimed = widened(probe.gradients[index])
    if norm(claimed * move) > level:
        return None
    changed = False
    for seed in range(1, TRIALS + 1):
        generator = torch.Generator().manual_seed(seed)
        values, vs = (moved_by_units(of, generator) for of in (function.values, probe.cotangents))
        try:
            found = function.gradients_at(values, vs)
        except Exception:  # the user's backward may raise anything
            return None
        other = widened(found[index])
        if other.shape != claimed.shape or not norm(other * move) <= level:
            return None
        changed |= norm(other - claimed) > CHANGED * max(norm(claimed), norm(other))
    if not changed:
        return None
    return replace(item, pairs=[replace(pair, worth=0.0) for pair in item.pairs])


def moved_by_units(
    tensors: Sequence[torch.Tensor], generator: torch.Generator, units: int = 1
) -> list[torch.Tensor]:
    """``tensors``, with each element moved up or down by at most ``units`` in the last place."""
    moved = []
    for value in tensors:
        steps = torch.randint(-units, units + 1, tuple(value.shape), generator=generator)
        moved.append(value * (1.0 + 2.0 * unit_roundoff(value.dtype) * steps.to(value)))
    return moved
