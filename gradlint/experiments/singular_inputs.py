"""Inputs at which the formula of forward has no finite derivative, as it has at the sample.

Sizes that gradlint chooses may leave nothing of what an op is meant for: an angle between vectors
of one component is acos(±1), and a distance between atoms is zero where there is only one. Such a
function may well be constant there, so that differences along its elements are zero and tell
nothing, while every formula of the derivative divides by zero.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from gradlint.experiments.finiteness import values_of
from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised


def singular_inputs(subject: Subject, there: Subject) -> set[str]:
    """Names of the inputs of ``there`` for which forward has no finite derivative, and has one at
    the sample of ``subject``: autograd through forward's own operations is not finite, or forward
    takes the length or the angle of a vector of zeros, for which autograd returns zero by
    convention. All elements of an input count together: rounding decides at which of them a cosine
    is exactly one. Up to 4 forward calls and 2 backward calls."""
    if _directionless(there) and not _directionless(subject):
        return {item.name for item in there.problem.inputs}
    found = _not_finite_under_autograd(there)
    return found - _not_finite_under_autograd(subject) if found else found


def _not_finite_under_autograd(subject: Subject) -> set[str]:
    """Names of the inputs for which autograd returns gradients that are not finite; none where
    forward is not made of differentiable operations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forward was not written to run under autograd
        problem = through_autograd(subject)
        if problem is None:
            return set()
        try:
            found = problem.pull(subject.run.cotangents)
        except (OpRaised, ValueError):
            return set()
        finally:
            subject.problem.forward_calls += problem.forward_calls
            subject.problem.backward_calls += problem.backward_calls
    pairs = zip(problem.inputs, found, strict=True)
    values = {item.name: None if grad is None else values_of(grad) for item, grad in pairs}
    return {
        name
        for name, value in values.items()
        if value is not None and not bool(value.isfinite().all())
    }


def _directionless(subject: Subject) -> bool:
    """Whether forward takes the length or the angle of a vector of zeros. One forward call."""
    watched = _ZeroVectors()
    run = subject.problem.through(lambda invoke: invoke)
    run.surroundings = lambda: watched
    try:
        run.forward()
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += run.forward_calls
    return watched.seen


class _ZeroVectors(DispatchMode):
    """Looks for lengths and angles of vectors that are zero.

    Attributes:
        seen: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in (torch.ops.aten.linalg_vector_norm, torch.ops.aten.norm):
            self.seen = self.seen or bool((result == 0).any())
        elif packet is torch.ops.aten.atan2:
            y, x = args
            self.seen = self.seen or bool(((y == 0) & (x == 0)).any())
        return result
