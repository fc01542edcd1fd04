"""What transformed calls are compared with: the op itself, at its sample and at a point nearby."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch

from gradlint.experiments.baseline_comparison import (
    ROUNDINGS,
    Difference,
    compare,
    make_baseline,
    share_of,
)
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite, widened
from gradlint.trace.op_io import OpRaised

#: Relative moves of the inputs to a point nearby, the first that the op accepts (heuristic: far
#: enough for other branches and other first digits; then near enough for narrow domains).
MOVES = (0.25, 1e-3)

_nearby: WeakKeyDictionary[Subject, Point | None] = WeakKeyDictionary()


@dataclass
class Point:
    """The op at one point: values of its inputs, and what plain calls return there."""

    values: list[torch.Tensor]
    outputs: dict[str, torch.Tensor]
    gradients: list[torch.Tensor | None]


def sample_point(subject: Subject) -> Point:
    """The sample itself; only where ``subject.once(make_baseline)`` is there."""
    baseline = subject.once(make_baseline)
    assert baseline is not None
    return Point(subject.problem.values(), baseline.outputs, baseline.gradients)


def nearby_point(subject: Subject) -> Point | None:
    """The op with every input moved a little, at one forward and one backward; None where it
    raises, changes in kind or is not finite there."""
    if subject not in _nearby:
        tried = (_moved(subject, share) for share in MOVES)
        _nearby[subject] = next((point for point in tried if point is not None), None)
    return _nearby[subject]


def point_at(subject: Subject, values: Sequence[torch.Tensor]) -> Point | None:
    """The op at ``values``; None where it raises or its outputs are of another kind."""
    run, problem = subject.run, subject.problem
    try:
        leaves, outputs = problem.linearize(values)
        if [item.kind for item in outputs] != [item.kind for item in run.outputs]:
            return None
        gradients = problem.pull_from(outputs, leaves, run.cotangents)
    except OpRaised:
        return None
    found = {item.name: item.value.detach() for item in outputs}
    if not all(all_finite(value) for value in [*found.values(), *gradients] if value is not None):
        return None
    return Point(list(values), found, gradients)


def output_difference(
    subject: Subject, name: str, got: torch.Tensor | None, expected: torch.Tensor
) -> Difference | None:
    """Where output ``name`` is not what a plain call returns, beyond rounding."""
    return compare(0, name, got, expected, _allowed(expected, _sensitivity(subject)))


def batched_difference(
    subject: Subject, name: str, batched: torch.Tensor, points: Sequence[Point]
) -> Difference | None:
    """The first slice of a batched output ``name`` that is not what ``points`` hold."""
    for number, point in enumerate(points):
        found = output_difference(subject, name, batched[number].detach(), point.outputs[name])
        if found is not None:
            return in_slice(found, [number])
    return None


def gradient_difference(
    subject: Subject, position: int, got: torch.Tensor | None, expected: torch.Tensor | None
) -> Difference | None:
    """Where the gradient of input ``position`` is not that of a plain call, beyond rounding."""
    item, baseline = subject.problem.inputs[position], subject.once(make_baseline)
    allowed = None if expected is None else _allowed(expected, _sensitivity(subject, position))
    if allowed is not None and baseline is not None:
        allowed += baseline.left_over(position)
    return compare(position, item.name, got, expected, allowed)


def in_slice(found: Difference, front: Sequence[int]) -> Difference:
    """``found`` in a slice, with the index of that slice in front."""
    return found if found.index is None else replace(found, index=[*front, *found.index])


@contextmanager
def quiet_compilers() -> Iterator[None]:
    """Warnings and log messages of compilers are not shown in the body."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def _moved(subject: Subject, share: float) -> Point | None:
    generator = torch.Generator().manual_seed(subject.seed)
    values = []
    for value in subject.problem.values():
        u = 2.0 * torch.rand(value.shape, generator=generator, dtype=torch.float64) - 1.0
        values.append((value * (1.0 + share * u).to(value.device)).to(value.dtype))
    return point_at(subject, values)


def _allowed(expected: torch.Tensor, sensitivity: float) -> torch.Tensor:
    wide = torch.nan_to_num(widened(expected).abs(), 0.0, 0.0, 0.0)
    top = float(wide.max()) if wide.numel() else 0.0
    share = share_of(expected.dtype) if expected.is_floating_point() else 0.0
    share = share_of(expected.dtype) if expected.is_complex() else share
    return torch.full(wide.shape, (share + sensitivity) * top, dtype=torch.float64).to(wide.device)


def _sensitivity(subject: Subject, position: int | None = None) -> float:
    """Relative change of a gradient (or of the most sensitive one) under one unit roundoff in the
    inputs, times what another order of summation makes of it."""
    baseline = subject.once(make_baseline)
    if baseline is None or baseline.jittered is None:
        return 0.0
    worst = 0.0
    for k, (moved, still) in enumerate(zip(baseline.jittered, baseline.gradients, strict=True)):
        if moved is None or still is None or position not in (None, k) or not still.numel():
            continue
        top = float(widened(still).abs().max())
        gap = float(torch.nan_to_num((widened(moved) - widened(still)).abs()).max())
        worst = max(worst, gap / top) if top else worst
    return ROUNDINGS * worst
