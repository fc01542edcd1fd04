"""Gradients that are nothing but rounding error, which no rule can compare."""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.decide import Decision
from gradlint.numerics.products import norm, widened
from gradlint.numerics.vanishing import CHANGED, TRIALS, moved_by_units
from gradlint.trace.op_io import OpRaised

#: An error is rounding up to this many times what single units in the last place change (heuristic:
#: the largest of a few independent draws of what remains of terms that cancel is below the error of
#: one of them now and then).
DRAWN = 2.0


def only_rounding(subject: Subject) -> set[int]:
    """Positions of the inputs whose gradient at the sample changes completely when inputs and
    cotangents move by a few units in the last place: its terms cancel (as those of a sum of
    softmax), and what remains is effectively zero.

    Costs a few forwards and backwards; to be called before a finding is reported.
    """
    problem, usual = subject.problem, subject.run.gradients or []
    names = list(subject.run.cotangents)
    scattered: set[int] = set()
    for seed in range(1, TRIALS + 1):
        generator = torch.Generator().manual_seed(seed)
        # One unit may leave a short sum as it was.
        values = moved_by_units(problem.values(), generator, 2**seed)
        vs = moved_by_units([subject.run.cotangents[name] for name in names], generator, 2**seed)
        try:
            found = problem.pull(dict(zip(names, vs, strict=True)), values)
        except OpRaised:
            return set()
        for position, (before, after) in enumerate(zip(usual, found, strict=True)):
            if before is None or after is None or before.shape != after.shape:
                continue
            one, other = widened(before), widened(after)
            if norm(one - other) > CHANGED * max(norm(one), norm(other)):
                scattered.add(position)
    return scattered


def changes_as_much(decision: Decision, position: int) -> bool:
    """Whether the gradient of input ``position`` changes by as much as it is off, along every
    direction along which it is, when inputs move by a few units in the last place: what differs is
    what rounding leaves of terms that cancel, as the distance of a point to the line it lies on.

    Costs a few backwards for each direction.
    """
    judgement, function = decision.judgement, decision.function
    judged = next(item for item in judgement.inputs if item.index == position)
    off = [k for k, pair in enumerate(judged.pairs) if pair.differs]
    for k in off:
        probe = judgement.probe(k)
        own, change = widened(probe.gradients[position]), 0.0
        for seed in range(1, TRIALS + 1):
            generator = torch.Generator().manual_seed(seed)
            values = moved_by_units(function.values, generator, 2**seed)
            try:
                found = widened(function.gradients_at(values, probe.cotangents)[position])
            except OpRaised:
                return False
            if found.shape != own.shape:
                return False
            change = max(change, norm((found - own) * probe.moves[position]))
        if not judged.pairs[k].error <= DRAWN * change:
            return False
    return bool(off)
