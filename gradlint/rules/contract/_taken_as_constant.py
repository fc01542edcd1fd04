"""Tensors that were inferred to be constants, since backward has no gradient for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.rules._raw import Returned
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import Problem


def taken_as_constants(subject: Subject) -> Iterator[tuple[Returned, float]]:
    """What backward returned None for although the outputs depend on it, and the slope; only where
    gradlint chose which arguments require grad, and only of arguments that it chose not to.

    With grad required of the argument too, backward must return None still: it may compute what is
    asked for, or refuse to.
    """
    from gradlint.rules._raw import returned_gradients
    from gradlint.rules.contract._dependence import slope_along
    from gradlint.trace._record import record

    own = subject.run.own
    if subject.sample.origin != "inferred" or own is None:
        return
    for item in returned_gradients(subject):
        if item.node is not own or own.function is not subject.op.function or item.needed:
            continue
        problem = _requiring(subject, item.position)
        if item.value is not None or problem is None:
            continue
        index = next(i for i, x in enumerate(problem.inputs) if x.position == item.position)
        found = record(problem)
        returned = found.own.returned if found.own is not None else ()
        if not isinstance(returned, tuple) or len(returned) <= item.position:
            continue
        slope = slope_along(subject, index, problem) if returned[item.position] is None else None
        if slope is not None:
            yield item, slope


def _requiring(subject: Subject, position: int) -> Problem | None:
    """The problem with grad required of one more argument; None where that has no derivatives."""
    import torch

    args = list(subject.sample.args)
    value = args[position] if position < len(args) else None
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if not (value.is_floating_point() or value.is_complex()):
        return None
    args[position] = value.detach().clone().requires_grad_()
    return subject.problem.at(replace(subject.sample, args=tuple(args)))
