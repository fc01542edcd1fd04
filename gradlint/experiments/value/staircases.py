"""A gradient that is wrong at a point, and right in the large: forward is a staircase.

An op that quantizes what it is given (in a kernel, in 8 bits, by a scale that it takes from the
input) has a derivative of no use, and backward returns that of the slope on which the stairs lie: a
straight-through estimator. No word and no call need tell of it: over a small step forward changes
otherwise than backward says, and over steps of many stairs it changes as backward says.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.directions import cotangent, move_scale
from gradlint.numerics.map import Map
from gradlint.numerics.products import real_dot, widened
from gradlint.trace.op_io import OpRaised

#: Steps that lie within one stair, and over many (heuristic: eight bits have stairs of 1/127 of the
#: largest element; beyond a quarter of their size, other functions are hardly straight).
SMALL, LARGE = 2.0**-20, (2.0**-2, 2.0**-3, 2.0**-4)

#: Share of the predicted change by which that of a small step differs at least, and that of large
#: ones at most (heuristic: a smooth function does not differ between them by a quarter).
APART, CLOSE = 0.5, 0.25

#: How many of the large steps must be close.
MOST_OF_LARGE = 2

#: Draws of a cotangent, and of the elements that move.
DRAWS = 3


def follows_in_the_large(subject: Subject, position: int) -> bool:
    """Whether input ``position`` has a gradient that is wrong over small steps and right over large
    ones."""
    value = subject.problem.inputs[position].value
    if value.is_complex() or value.layout != torch.strided or not value.numel():
        return False
    function = subject.first_order_map
    generator = torch.Generator().manual_seed(subject.seed)
    try:
        return all(_is_staircase(function, position, generator) for _ in range(DRAWS))
    except OpRaised:
        return False


def _is_staircase(function: Map, position: int, generator: torch.Generator) -> bool:
    """Whether it is so under one cotangent, for a random half of the elements."""
    vs = [cotangent(output, generator) for output in function.outputs]
    gradient = widened(function.gradients_at(function.values, vs)[position])
    value = function.values[position]
    half = torch.rand(value.shape, generator=generator, dtype=torch.float64) < 0.5
    u = torch.sgn(gradient) * move_scale(value) * half.to(value.device)
    predicted = real_dot(gradient, u)
    if not 0.0 < predicted < float("inf"):
        return False
    small, *large = (_slope(function, position, vs, u, step) for step in (SMALL, *LARGE))
    if small is None or abs(small - predicted) <= APART * predicted:
        return False
    close = [s is not None and abs(s - predicted) <= CLOSE * predicted for s in large]
    return sum(close) >= MOST_OF_LARGE


def _slope(
    function: Map, position: int, vs: Sequence[torch.Tensor], u: torch.Tensor, step: float
) -> float | None:
    """The change of ⟨v, f⟩ from -u to u, by its length; None where forward takes no such values."""
    ends = []
    for sign in (1.0, -1.0):
        values = list(function.values)
        values[position] = (widened(values[position]) + sign * step * u).to(values[position].dtype)
        found = function.evaluate(values)
        if found is None or any(a.shape != b.shape for a, b in zip(found, vs, strict=True)):
            return None
        ends.append(found)
    changes = (real_dot(v, widened(a) - widened(b)) for v, a, b in zip(vs, *ends, strict=True))
    return sum(changes) / (2.0 * step)
