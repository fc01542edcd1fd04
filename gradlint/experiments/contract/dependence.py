"""Whether the outputs depend smoothly on one input, whatever backward says."""

from __future__ import annotations

import math

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.differences import (
    LADDER,
    difference,
    estimate,
    noise_factor,
    significand_bits,
)
from gradlint.numerics.directions import cotangent, direction
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: A slope counts when it is this many times its error bar (heuristic: the bar alone is a 6.5 σ
#: limit; ten times that leaves no room for an alarm on noise).
CLEAR = 10.0


def slope_along(subject: Subject, index: int, problem: Problem | None = None) -> float | None:
    """The slope of Re⟨v, f⟩ along a direction of signs in input ``index``; None if not clear.

    Measured by central differences with realised displacements, in float64 where the op takes it.
    Where f is piecewise constant, slopes are zero or grow like 1/h, and neither is clear.

    Args:
        problem: whose input is moved; default the subject's own.
    """
    problem = wide_problem(subject, problem)
    value = problem.inputs[index].value
    if value.numel() == 0 or value.layout != torch.strided:
        return None
    names = [output.name for output in subject.run.outputs if output.differentiable]
    generator = torch.Generator().manual_seed(subject.seed)
    for kind in ("signs", "random"):
        slope = _slope(problem, index, names, kind, generator)
        if slope is not None:
            return slope
    return None


def _slope(
    problem: Problem, index: int, names: list[str], kind: str, generator: torch.Generator
) -> float | None:
    value = problem.inputs[index].value
    finite: list[torch.Tensor] = []

    def evaluate(moved: torch.Tensor) -> list[torch.Tensor] | None:
        values = problem.values()
        values[index] = moved
        try:
            found = {output.name: output.value.detach() for output in problem.forward(values)}
        except OpRaised:
            return None
        chosen = [found[name] for name in names if name in found]
        if len(chosen) != len(names) or any(c.layout != torch.strided for c in chosen):
            return None
        if not finite:
            finite.extend(torch.isfinite(tensor) for tensor in chosen)
        if any(mask.shape != tensor.shape for mask, tensor in zip(finite, chosen, strict=True)):
            return None
        # Infinities that forward puts there on purpose have no part in the slope.
        zero = [torch.zeros_like(tensor) for tensor in chosen]
        return [torch.where(*each) for each in zip(finite, chosen, zero, strict=True)]

    at_sample = evaluate(value)
    if not at_sample:
        return None
    vs = [cotangent(output, generator) for output in at_sample]
    nothing = torch.zeros_like(value)
    u = direction(kind, value, nothing, generator)
    ladder = LADDER[significand_bits(value.dtype)]
    steps = [difference(evaluate, value, u, vs, nothing, 2.0**-e) for e in ladder]
    usable = [step for step in steps if step is not None]
    found = estimate(usable, noise_factor([usable]))
    if found is None or not math.isfinite(found.bar) or abs(found.slope) <= CLEAR * found.bar:
        return None
    return found.slope


def wide_problem(subject: Subject, problem: Problem | None = None) -> Problem:
    """``problem`` (default the subject's own) in float64, or as it is where the op does not take
    that."""
    problem = problem or subject.problem
    if all(item.value.dtype in (torch.float64, torch.complex128) for item in problem.inputs):
        return problem
    if subject.op.module is not None or not problem.inputs:
        return problem
    device = str(problem.inputs[0].value.device)
    wide = problem.at(problem.sample.converted(torch.float64, device))
    try:
        outputs = wide.forward()
    except OpRaised:
        return problem
    before = [(output.name, output.value.shape) for output in subject.run.outputs]
    same = before == [(output.name, output.value.shape) for output in outputs]
    return wide if same else problem
