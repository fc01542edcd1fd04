"""Whether outputs depend smoothly on an input, measured without backward."""

from __future__ import annotations

import math

import torch

from gradlint.experiments.judged_dtype import float64_problem
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
#: limit; ten times that rules out false alarms from noise).
CLEAR = 10.0


def clear_slope(subject: Subject, index: int, problem: Problem | None = None) -> float | None:
    """The slope of Re⟨v, f⟩ along a direction of signs in input ``index``; None if not clear.

    Measured by central differences with realised displacements, in float64 where the op takes it.
    Where f is piecewise constant, slopes are zero or grow like 1/h, and neither is clear.

    Args:
        problem: whose input is moved; default the subject's own.
    """
    problem = float64_problem(subject, problem)
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
        # Infinities that forward returns on purpose do not contribute to the slope.
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


def first_dependence(problem: Problem) -> tuple[str, str, float] | None:
    """(input, output, slope) of the first smooth dependence found by finite differences, or None.

    Piecewise constant dependence (rounding, comparisons) has no slope and does not count.
    """
    generator = torch.Generator().manual_seed(problem.seed)
    at_sample = [
        o for o in problem.forward() if o.value.is_floating_point() or o.value.is_complex()
    ]
    for position, item in enumerate(problem.inputs):
        if item.value.numel() == 0:
            continue
        for output in at_sample:
            name = output.name

            def evaluate(value: torch.Tensor, position: int = position, name: str = name):  # type: ignore[no-untyped-def]
                values = problem.values()
                values[position] = value
                try:
                    found = problem.forward(values)
                except OpRaised:
                    return None
                chosen = [o.value for o in found if o.name == name]
                return chosen or None

            v = cotangent(output.value, generator)
            zero = torch.zeros_like(item.value)
            u = direction("signs", item.value, zero, generator)
            exponents = LADDER[significand_bits(item.value.dtype)]
            steps = [difference(evaluate, item.value, u, [v], zero, 2.0**-e) for e in exponents]
            found = estimate([step for step in steps if step is not None], 1.0)
            if found is None or not math.isfinite(found.bar):
                continue
            if abs(found.slope) > 10.0 * found.bar and abs(found.slope) > 1e-9:
                return item.name, name, found.slope
    return None
