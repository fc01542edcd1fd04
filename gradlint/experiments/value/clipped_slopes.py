"""Slopes that backward clips: exp(x) with the gradient of exp(clamp(x, -15, 15)).

A derivative that may overflow, or vanish, is kept within bounds on purpose, often without a word.
It shows: forward acts on every element alone, backward calls a function that clamps, and what it
returns is the slope of forward wherever this lies within two bounds, and the nearer bound wherever
it does not. Where forward is flat beyond bounds of its own, it has no slope to keep: a mask is
missing. Where it compares with the same numbers, it has a branch there that backward lacks.
"""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.targets.nodes import code_of
from gradlint.trace.comparisons import Comparisons
from gradlint.trace.op_io import OpRaised

#: Names of functions that clamp.
_CLAMPING = frozenset(
    {
        *("clamp", "clamp_", "clamp_min", "clamp_max", "clip", "clip_"),
        *("minimum", "maximum", "hardtanh", "threshold"),
    }
)

#: Factors by which the values are multiplied to see more of what is beyond the bounds.
_FACTORS = (1.0, 0.5, 0.1, 0.03, 1.5, 3.0, 10.0)

#: Share of an element by which it is moved to measure a slope, and the relative error up to which a
#: slope counts as right (heuristic: central differences are off by the square of the step times the
#: third derivative, that of exp at 50 by 1e-7).
_STEP = 2.0**-20
_CLOSE = 1e-4

#: Elements that are clipped at least, and slopes apart from each other that are not: so many agree
#: with the bounds by no accident (heuristic).
_CLIPPED, _FREE = 3, 4


def clips_slope(subject: Subject, position: int) -> bool:
    """Whether the gradient of input ``position`` is the slope of forward, kept within bounds."""
    value = subject.problem.inputs[position].value
    if not value.is_floating_point() or value.layout != torch.strided or not _clamps(subject):
        return False
    claimed, measured = [], []
    try:
        for factor in _FACTORS:
            slopes = _slopes(subject, position, factor)
            if slopes is None:
                return False
            claimed.append(slopes[0])
            measured.append(slopes[1])
    except (OpRaised, RuntimeError):
        return False
    own, true = torch.cat(claimed), torch.cat(measured)
    known = torch.isfinite(own) & torch.isfinite(true)
    own, true = own[known], true[known]
    if len(own) < _CLIPPED + _FREE or _has_branch(subject):
        return False
    low, high = own.min(), own.max()
    wrong = (own - true).abs() > _CLOSE * torch.maximum(own.abs(), true.abs())
    if not bool(true[wrong].any()):
        return False
    at_bound = torch.isclose(own, low, 1e-9, 0.0) & (true < low)
    at_bound |= torch.isclose(own, high, 1e-9, 0.0) & (true > high)
    return (
        int(wrong.sum()) >= _CLIPPED
        and bool(at_bound[wrong].all())
        and len(own[~wrong].unique()) >= _FREE
    )


def _has_branch(subject: Subject) -> bool:
    """Whether forward compares with one of the numbers that backward clamps to."""
    problem, forward, backward = subject.problem, Comparisons(), Comparisons()
    try:
        with forward:
            leaves, outputs = problem.linearize()
        chosen = [item for item in outputs if item.name in subject.run.cotangents]
        with backward:
            problem.backward(chosen, leaves, [subject.run.cotangents[i.name] for i in chosen])
    except (OpRaised, RuntimeError):
        return False
    clamped = {item.threshold for item in backward.compared.values() if item.bounds}
    return not clamped.isdisjoint(forward.thresholds)


def _clamps(subject: Subject) -> bool:
    """Whether the code of backward calls a function that clamps."""
    code = code_of(getattr(subject.op.function, "backward", None))
    return code is not None and bool(_CLAMPING & set(code.co_names))


def _slopes(
    subject: Subject, position: int, factor: float
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The slopes that backward claims and those measured, with the input ``factor`` times as large;
    None where forward does not act on every element alone."""
    problem = subject.problem.in_float64() or subject.problem
    values = problem.values()
    x = values[position] = factor * values[position]
    names = [item.name for item in subject.run.outputs if item.differentiable]
    if len(names) != 1:
        return None
    weights = torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape).to(x)
    pulled = problem.pull({names[0]: weights}, values)[position]
    ones = problem.pull({names[0]: torch.ones_like(x)}, values)[position]
    if pulled is None or ones is None or not torch.allclose(pulled, ones * weights, 1e-9, 0.0):
        return None
    ends = []
    for sign in (1.0, -1.0):
        moved = list(values)
        moved[position] = x * (1.0 + sign * _STEP)
        (output,) = [i.value for i in problem.forward(moved) if i.name == names[0]]
        if output.shape != x.shape:
            return None
        ends.append((moved[position], output))
    (x1, y1), (x0, y0) = ends
    return ones.reshape(-1).detach(), ((y1 - y0) / (x1 - x0)).reshape(-1)
