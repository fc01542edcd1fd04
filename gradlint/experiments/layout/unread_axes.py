"""Axes with a length of their own, which forward does not check: three taps of a filter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch

from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import Axis, resized, tensors_of
from gradlint.model.sample import Sample, map_tensors
from gradlint.trace.op_io import OpRaised

#: Values that no forward reads without a trace in its outputs: some functions ignore NaN, a maximum
#: ignores small numbers, a minimum large ones (heuristic: beyond what samples have).
TELLING_VALUES = (math.nan, 1e6, -1e6)

#: An axis has a length of its own only where none is read of as many elements more as it had: of a
#: single one more, a forward that works in blocks leaves out the remainder.
LEAST_GROWTH = 2


def unread_axes(
    subject: Subject, sample: Sample, change: Mapping[Axis, int], *, to_the_end: bool = True
) -> set[Axis]:
    """Axes of ``change`` along which forward reads what the sample of ``subject`` has, and nothing
    of what ``sample`` has beyond.

    Empty where integers or masks may select what is read.

    Args:
        to_the_end: whether forward must read the last of what the sample has: a quaternion with a
            scale may be taken for its rotation only, which backward has no use for either.
    """
    before, after = tensors_of(subject.sample), tensors_of(sample)
    if not all(tensor.is_floating_point() or tensor.is_complex() for tensor in after):
        return set()
    reference = _outputs(subject, sample)
    if reference is None:
        return set()
    found = set()
    for (number, axis), new in change.items():
        old = before[number].shape[axis]
        if old < new < LEAST_GROWTH * old:
            if _unread_once_it_grows(subject, (number, axis), old, to_the_end=to_the_end):
                found.add((number, axis))
            continue
        if new < LEAST_GROWTH * old:
            continue
        added = (after[number], axis, slice(old, new))
        last = (after[number], axis, slice(old - 1, old))
        ignored = all(_same(reference, _with(subject, sample, *added, v)) for v in TELLING_VALUES)
        if not ignored:
            continue
        if not to_the_end or not _same(reference, _with(subject, sample, *last, math.nan)):
            found.add((number, axis))
    return found


def leaves_others_unread(subject: Subject, sample: Sample, change: Mapping[Axis, int]) -> bool:
    """Whether axes that shrank make forward leave out the last elements of another tensor, and not
    the first, while it reads both at the sample of ``subject``: a filter that is longer than what
    it filters. Where nothing of a tensor is read any more, forward has nothing to do at such a
    size, and backward must cope with that."""
    before = tensors_of(subject.sample)
    if all(new >= before[number].shape[axis] for (number, axis), new in change.items()):
        return False
    changed = {number for number, _ in change}
    return any(
        _is_read(subject, subject.sample, number, axis, -1)
        and not _is_read(subject, sample, number, axis, -1)
        and _is_read(subject, sample, number, axis, 0)
        for number, tensor in enumerate(before)
        if number not in changed and (tensor.is_floating_point() or tensor.is_complex())
        for axis in range(tensor.dim())
        if tensor.shape[axis] > 1
    )


def reads_all(subject: Subject, sample: Sample, change: Mapping[Axis, int]) -> bool:
    """Whether forward reads the middle and the last element along each axis of ``change``: an op
    that needs two halves leaves one of them out where the size is odd."""
    tensors = tensors_of(sample)
    floating = [
        axis
        for axis in change
        if tensors[axis[0]].is_floating_point() or tensors[axis[0]].is_complex()
    ]
    return bool(floating) and all(
        _is_read(subject, sample, number, axis, position)
        for number, axis in floating
        for position in (-1, tensors[number].shape[axis] // 2)
    )


def _is_read(subject: Subject, sample: Sample, number: int, axis: int, position: int) -> bool:
    """Whether forward reads the elements at ``position`` along an axis of a tensor."""
    tensor = tensors_of(sample)[number]
    start = position % tensor.shape[axis]
    part = (tensor, axis, slice(start, start + 1))
    reference = _outputs(subject, sample)
    return reference is None or not all(
        _same(reference, _with(subject, sample, *part, value)) for value in TELLING_VALUES
    )


def _unread_once_it_grows(subject: Subject, axis: Axis, old: int, *, to_the_end: bool) -> bool:
    """Whether forward takes ``axis`` alone with :data:`LEAST_GROWTH` times its size ``old``, and
    reads nothing of what was added."""
    change = {axis: LEAST_GROWTH * old}
    grown = resized(subject.sample, change, seed=subject.seed)
    return grown is not None and bool(unread_axes(subject, grown, change, to_the_end=to_the_end))


def _with(
    subject: Subject, sample: Sample, tensor: torch.Tensor, axis: int, where: slice, value: float
) -> list[torch.Tensor] | None:
    """The outputs with ``value`` in place of a part of ``tensor``."""

    def place(one: torch.Tensor) -> torch.Tensor:
        made = one.detach().clone()
        if one is tensor:
            made.movedim(axis, 0)[where] = value
        return made.requires_grad_(one.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), place)
    return _outputs(subject, replace(sample, args=args, kwargs=kwargs))


def _outputs(subject: Subject, sample: Sample) -> list[torch.Tensor] | None:
    problem = subject.problem.at(sample)
    try:
        return [item.value.detach() for item in problem.forward()]
    except OpRaised:
        return None
    finally:
        subject.problem.forward_calls += problem.forward_calls


def _same(one: list[torch.Tensor], other: list[torch.Tensor] | None) -> bool:
    if other is None or len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(
        a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all()) for a, b in pairs
    )
