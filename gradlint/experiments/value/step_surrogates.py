"""Surrogates of a step: the gradient of a spike is a bump over the threshold.

Forward is one number below a threshold and a larger one above it, as a spiking neuron is. Its
derivative is zero, and training goes by a surrogate h(x) ≥ 0 that is largest at the threshold and
falls away on both sides: a triangle, a rectangle, the slope of a sigmoid (Neftci, Mostafa & Zenke,
Surrogate gradient learning in spiking neural networks, IEEE Signal Process. Mag. 36, 2019). Which
one is meant can't be told; that it is one of that shape can. A wrong sign, a mask that is the wrong
way round, a bump over another place and a dependence on other elements are none.
"""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.trace.op_io import OpRaised

#: Factors by which the values are multiplied, so that both sides far from the threshold are seen.
FACTORS = (1.0, 3.0, 30.0, -3.0, -30.0)

#: Roundings by which neighbouring slopes may be in the wrong order (heuristic).
ROUNDINGS = 1e3


def is_bump_over_step(
    subject: Subject, position: int, threshold: torch.Tensor | None = None
) -> bool:
    """Whether the gradient of input ``position`` is grad_output times a bump over the step that
    forward makes. Two forward and two backward calls for each factor.

    Args:
        threshold: where the step is, if elements have thresholds of their own; of a shape that
            broadcasts to that of the input.
    """
    points: list[tuple[torch.Tensor, ...]] = []
    names = [item.name for item in subject.run.outputs if item.differentiable]
    try:
        for factor in FACTORS:
            seen = _at(subject, position, factor, names)
            if seen is None:
                return False
            x, y, slope = seen
            shift = torch.zeros_like(x) if threshold is None else threshold.to(x)
            points.append(tuple(part.reshape(-1) for part in (x - shift, y, slope)))
    except (OpRaised, RuntimeError):
        return False
    x, y, slope = (torch.cat(parts) for parts in zip(*points, strict=True))
    order = x.argsort()
    y, slope = y[order], slope[order]
    levels = y.unique()
    if len(levels) != 2 or not bool((y.diff() >= 0).all()):
        return False
    bar = ROUNDINGS * torch.finfo(slope.dtype).eps * float(slope.abs().max())
    below, above = slope[y == levels[0]], slope[y == levels[1]]
    rises = bool((below.diff() >= -bar).all()) and bool((above.diff() <= bar).all())
    falls = float(torch.maximum(below[0], above[-1])) < 0.5 * float(slope.max())
    return rises and falls and bool((slope >= 0).all())


def _at(
    subject: Subject, position: int, factor: float, names: list[str]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """Input, output and slope by element, with the input ``factor`` times as large; None where the
    slope is no number for each element alone."""
    values = [value.detach() for value in subject.problem.values()]
    x = values[position] = factor * values[position]
    outputs = [item for item in subject.problem.forward(values) if item.name in names]
    if len(outputs) != 1 or outputs[0].value.shape != x.shape or not x.is_floating_point():
        return None
    slopes = []
    for cotangent in (torch.ones_like(x), torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape)):
        weights = cotangent.to(x)
        pulled = subject.problem.pull({names[0]: weights}, values)[position]
        if pulled is None or pulled.shape != x.shape:
            return None
        slopes.append(pulled.detach() / weights)
    first, second = slopes
    if not torch.allclose(first, second, rtol=1e-6, atol=1e-12):
        return None
    return x, outputs[0].value.detach(), first
