"""Gradients that are nothing but rounding error, which no rule can compare."""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import norm, widened
from gradlint.numerics.vanishing import CHANGED, TRIALS, moved_by_units
from gradlint.trace.op_io import OpRaised


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
