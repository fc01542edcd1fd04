"""NaN where the function tends to a value: singularities of the formula, not of the function.

At a NaN output with x = c, f(c ± h) and f(c ± h/1024) are compared: where they agree on a side, and
the other side does not disagree, f has a limit there. f(c ± 1.001·h) must be near f(c ± h):
remainders by a vanishing divisor vanish too, but jump.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from gradlint.experiments.finite.extremes import ExtremePoint
from gradlint.experiments.finite.special_values import SpecialElement
from gradlint.experiments.subject import Subject
from gradlint.model.sample import map_tensors
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import rms, unit_roundoff, widened
from gradlint.trace.op_io import OpRaised

#: First step by significand bits, in units of the typical element, and how many times smaller the
#: second is (x·log x has moved by 2e-3 then in float32; a jump or a pole is clearly different
#: from a limit, and differences of rounded numbers still have two digits).
STEPS = {53: (2.0**-20, 2.0**-10), 24: (2.0**-12, 2.0**-4)}

#: A neighbour of the first step, and the share of the way to the limit that f may go between them.
NEIGHBOUR, LARGEST_JUMP = 1.001, 0.1

#: Roundings of the outputs that a difference of two of them may hold (heuristic).
ROUNDINGS = 16.0

#: What other arguments are in place of zero, in units of their typical element (heuristic).
NEAR_ZERO = 0.1

#: Values near and nearer that agree to this share of the typical output have a limit (heuristic).
AGREE = 1e-2


@dataclass(frozen=True)
class RemovableNaN:
    """A NaN where the function has a limit.

    Args:
        place: the special element of the inputs.
        output: name of the output; ``index``: where in it; ``limit``: what it tends to.
        values: of all inputs, none of them special but this element.
    """

    place: SpecialElement
    output: str
    index: list[int]
    limit: float
    values: list[torch.Tensor]


def removable_nans(subject: Subject, extreme: ExtremePoint) -> Iterator[RemovableNaN]:
    """The NaNs among the outputs at single special elements that have a limit, one a place."""
    holes = {
        name: value.isnan()
        for name, value in extreme.outputs.items()
        if value.is_floating_point() and bool(value.isnan().any())
    }
    if not holes:
        return
    before = {item.name: item.value.detach() for item in subject.run.outputs}
    for place in extreme.places:
        # Alone among ordinary values: 0 / 0 of two special elements may tend to anything.
        values = subject.problem.values()
        alone = ExtremePoint(extreme.name, extreme.problem, partial(list, values))
        values[place.position] = values[place.position].clone()
        values[place.position].view(-1)[place.element] = place.value
        outputs = _at(alone, place, 0.0)
        left = {
            name: hole & outputs[name].isnan()
            for name, hole in holes.items()
            if outputs
            and name in outputs
            and outputs[name].shape == hole.shape
            # Where other elements are infinite, forward has a pole: what is NaN follows from it.
            and not bool((outputs[name].isinf() & ~before[name].isinf()).any())
        }
        if not any(bool(hole.any()) for hole in left.values()):
            continue
        found = _limit(subject, alone, place, left)
        if found is not None and not _needs_other_zeros(subject, found, values):
            yield found


def _needs_other_zeros(
    subject: Subject, found: RemovableNaN, values: Sequence[torch.Tensor]
) -> bool:
    """Whether ``found`` is finite once no other argument is zero anywhere: 0 / 0 of two arguments
    tends to another value from every side."""
    changed = False

    def without_zeros(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if not tensor.is_floating_point() or not bool((tensor == 0).any()):
            return tensor
        changed = True
        near = NEAR_ZERO * (rms(tensor.detach()) or 1.0)
        return torch.where(tensor.detach() == 0, near, tensor.detach())

    def constant(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if tensor.requires_grad else without_zeros(tensor)

    sample = subject.sample
    args, kwargs = map_tensors((sample.args, sample.kwargs), constant)
    others = [
        value if position == found.place.position else without_zeros(value)
        for position, value in enumerate(values)
    ]
    if not changed:
        return False
    problem = subject.problem.at(replace(sample, args=args, kwargs=kwargs))
    try:
        outputs = {item.name: item.value for item in problem.forward(others)}
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls
    return bool(outputs[found.output][tuple(found.index)].isfinite())


def _limit(
    subject: Subject, extreme: ExtremePoint, place: SpecialElement, holes: dict[str, torch.Tensor]
) -> RemovableNaN | None:
    typical = subject.problem.values()[place.position]
    steps = STEPS.get(significand_bits(typical.dtype))
    if steps is None:
        return None
    step, shrink = steps
    scale = rms(typical) or 1.0
    rounding = ROUNDINGS * unit_roundoff(typical.dtype)
    sides = []
    for sign in (1.0, -1.0):
        near = _at(extreme, place, sign * step * scale)
        nearer = _at(extreme, place, sign * step * shrink * scale)
        beside = _at(extreme, place, sign * step * NEIGHBOUR * scale)
        if near is None or nearer is None or beside is None:
            return None
        sides.append((near, nearer, beside))
    for name, hole in holes.items():
        size = rms(torch.nan_to_num(sides[0][0][name], 0.0, 0.0, 0.0)) or 1.0
        limits = []
        open_side = torch.zeros_like(hole)
        agree = hole.clone()
        for near, nearer, beside in sides:
            a, b, c = near[name], nearer[name], beside[name]
            if a.shape != hole.shape or b.shape != hole.shape or c.shape != hole.shape:
                return None
            there = a.isfinite() & b.isfinite()
            open_side |= there
            steady = (a - c).abs() <= LARGEST_JUMP * (a - b).abs() + rounding * size
            agree &= ~there | (((a - b).abs() <= AGREE * size) & steady)
            limits.append(torch.where(there, b, torch.full_like(b, float("nan"))))
        right, left = limits
        both = right.isfinite() & left.isfinite()
        agree &= open_side & (~both | ((right - left).abs() <= AGREE * size))
        if bool(agree.any()):
            index = agree.nonzero()[0].tolist()
            limit = right if bool(right[tuple(index)].isfinite()) else left
            return RemovableNaN(place, name, index, float(limit[tuple(index)]), extreme.make())
    return None


def _at(
    extreme: ExtremePoint, place: SpecialElement, move: float
) -> dict[str, torch.Tensor] | None:
    values = [value.clone() for value in extreme.make()]
    flat = values[place.position].view(-1)
    least = unit_roundoff(flat.dtype) * abs(place.value)
    if move:
        flat[place.element] += math.copysign(max(abs(move), 4.0 * least), move)
    try:
        return {item.name: widened(item.value) for item in extreme.problem.forward(values)}
    except OpRaised:
        return None
