"""Which values are finite, and which infinities are there on purpose."""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.directions import direction
from gradlint.numerics.products import dense
from gradlint.trace.op_io import OpRaised, Output

#: Share of its size by which every input is moved to test whether an infinity stays (heuristic).
MOVE = 0.1

#: Factor by which inputs are shrunk to see whether an infinity is an overflow (heuristic).
SHRINK = 0.01


def values_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """``tensor`` dense and detached; None where it holds no floating values to look at."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type == "meta":
        return None
    return None if tensor.is_nested else dense(tensor.detach())


def inputs_finite(subject: Subject) -> bool:
    """Whether every floating tensor of the sample, parameters included, is finite."""
    tensors = [value for _, value in subject.sample.named_tensors(subject.op.signature)]
    tensors += [item.value for item in subject.problem.inputs]
    values = [values_of(tensor) for tensor in tensors]
    return all(value is None or bool(value.isfinite().all()) for value in values)


def constant_infinities(subject: Subject, output: Output) -> torch.Tensor | None:
    """Mask of the elements of ``output`` that are the same infinity at other inputs too.

    The differentiable inputs are moved, shrunk and negated. None where forward raised at all of
    these.
    """
    problem = subject.problem
    here = values_of(output.value)
    if here is None or not problem.inputs:
        return None
    generator = torch.Generator().manual_seed(subject.seed)
    values = problem.values()
    moved = [
        value
        + (MOVE * direction("random", value, torch.zeros_like(value), generator)).to(value.dtype)
        for value in values
        if value.layout == torch.strided
    ]
    if len(moved) != len(values):
        return None
    same = here.isinf()
    ran = False
    for trial in (moved, [SHRINK * value for value in values], [-value for value in values]):
        try:
            found = problem.forward(trial)
        except OpRaised:
            continue
        there = next((values_of(o.value) for o in found if o.name == output.name), None)
        if there is None or there.shape != here.shape:
            continue
        ran = True
        same &= there == here
    return same if ran else None
