"""Inputs at which the formula of forward has no finite derivative, as it has at the sample.

Sizes that gradlint chooses may leave nothing of what an op is meant for: an angle between vectors
of one component is acos(±1), and a distance between atoms is zero where there is only one. Such a
function may well be constant there, so that differences along its elements are zero and tell
nothing, while every formula of the derivative divides by zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradlint.experiments.finiteness import values_of
from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.numerics.products import rms
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: By how many times the typical element all elements of an input are moved (heuristic: no sum or
#: difference of usual values vanishes for it).
SHIFT = 0.8125

#: ATen operators (without overloads and trailing underscores) that choose between numbers.
_REPLACING = frozenset(
    ("where", "masked_fill", "nan_to_num", "index_put", "masked_scatter", "_index_put_impl")
)


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
    return {
        name
        for name, value in gradients_under_autograd(subject).items()
        if not bool(value.isfinite().all())
    }


def gradients_under_autograd(
    subject: Subject,
    problem: Problem | None = None,
    values: Sequence[torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """What autograd returns through forward's own operations, by the name of the input; empty where
    forward is not made of differentiable operations. Two forward calls and a backward call.

    Args:
        subject: whose cotangents are taken.
        problem: the op on other arguments; default the subject's own.
        values: the point; by default the problem's own.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forward was not written to run under autograd
        plain = through_autograd(subject, problem)
        if plain is None:
            return {}
        try:
            found = plain.pull(subject.run.cotangents, values)
        except (OpRaised, ValueError):
            return {}
        finally:
            subject.problem.forward_calls += plain.forward_calls
            subject.problem.backward_calls += plain.backward_calls
    dense = {
        item.name: None if grad is None else values_of(grad)
        for item, grad in zip(plain.inputs, found, strict=True)
    }
    return {name: value for name, value in dense.items() if value is not None}


def takes_zero_distances(
    subject: Subject, problem: Problem, values: Sequence[torch.Tensor], position: int
) -> bool:
    """Whether forward takes the length or the angle of a vector of zeros at ``values``, and does so
    with all elements of one input moved by the same amount: the vector lies between points of which
    two are equal, as no two atoms are. Up to two forward calls."""
    moved = list(values)
    step = rms(subject.problem.values()[position].detach()) or 1.0
    moved[position] = moved[position] + SHIFT * step
    watched = (_seen(_ZeroVectors(), subject, problem, point) for point in (values, moved))
    return all(watched)


def replaces_what_is_not_finite(
    subject: Subject, problem: Problem, values: Sequence[torch.Tensor]
) -> bool:
    """Whether forward computes numbers that are not finite and puts others in their place, as by
    ``torch.where``: what it does at such values is meant. One forward call."""
    return _seen(_Replacements(), subject, problem, values)


def _directionless(subject: Subject) -> bool:
    """Whether forward takes the length or the angle of a vector of zeros. One forward call."""
    return _seen(_ZeroVectors(), subject, subject.problem)


def _seen(
    watched: _Watching,
    subject: Subject,
    problem: Problem,
    values: Sequence[torch.Tensor] | None = None,
) -> bool:
    return watch_forward(subject, watched, problem, values) and watched.seen


class _Watching(DispatchMode):
    """Looks for an operation of a kind.

    Attributes:
        seen: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        judge = self.judge(func.overloadpacket, args)
        result = self.through(func, args, kwargs)
        self.seen = self.seen or (judge is not None and judge(result))
        return result

    def judge(self, packet: Any, args: tuple[Any, ...]) -> Callable[[Any], bool] | None:
        """What tells from the result of an operation whether it is of that kind; None where its
        arguments, as they are before it runs, show already that it is not."""
        raise NotImplementedError


class _ZeroVectors(_Watching):
    """Looks for lengths and angles of vectors that are zero."""

    def judge(self, packet: Any, args: tuple[Any, ...]) -> Callable[[Any], bool] | None:
        """See :class:`_Watching`."""
        if packet in (torch.ops.aten.linalg_vector_norm, torch.ops.aten.norm):
            return lambda result: bool((result == 0).any())
        if packet is torch.ops.aten.atan2:
            y, x = args
            return lambda result: bool(((y == 0) & (x == 0)).any())
        return None


class _Replacements(_Watching):
    """Looks for operations that put finite numbers in the place of others."""

    def judge(self, packet: Any, args: tuple[Any, ...]) -> Callable[[Any], bool] | None:
        """See :class:`_Watching`."""
        if getattr(packet, "__name__", "").rstrip("_") not in _REPLACING:
            return None
        given = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        if all(bool(a.isfinite().all()) for a in given):
            return None
        return lambda result: isinstance(result, torch.Tensor) and bool(result.isfinite().all())
