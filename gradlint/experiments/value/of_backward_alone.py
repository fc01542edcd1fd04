"""A gradient that no derivative of forward could be: backward depends on what forward does not use.

A moving average that is given for backward alone, the strength of a gradient reversal, or random
numbers that backward draws where forward draws none: what is returned then changes while forward
stays the same. That may well be meant, and the formula is not what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.experiments.judge_at_other_inputs import same_outputs
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.other_float_arguments import with_values
from gradlint.model.report import Explanation
from gradlint.numerics.products import all_finite, dense, widened
from gradlint.trace.op_io import OpRaised

#: Factors by which an argument is moved to see whether forward uses it (heuristic: a threshold
#: beyond which no value lies is passed by one of them).
FACTORS = (0.63, 1.7)

#: Relative change of the gradient from which backward depends on an argument, and not only for
#: stability, as on an epsilon (heuristic).
DEPENDS = 1e-2

#: Arguments that are moved at most; of more, the first ones.
MOST = 4

#: Causes by which such a gradient may be described: a factor, with or without its sign.
_FACTORS = frozenset({"scaled", "sign"})


@dataclass(frozen=True)
class OfBackward:
    """What backward alone depends on.

    Args:
        explained: for the grounds of the finding.
        help: what to do.
    """

    explained: Explanation
    help: str


def of_backward_alone(subject: Subject, position: int, cause: str | None) -> OfBackward | None:
    """What the gradient of input ``position`` depends on and forward does not; None where there is
    nothing, or ``cause``, the slug of a confirmed cause, says what else is wrong with a formula.
    Arguments are not moved where the sample itself asks about one that was."""
    forward, backward = subject.once(make_guarded).draws
    if backward and not forward:
        return OfBackward(
            "estimate",
            "backward draws random numbers, and forward draws none: where an estimate is meant, say"
            " so in the documentation, and compare its mean over many draws",
        )
    if subject.sample.moved or (cause is not None and cause not in _FACTORS):
        return None
    name = _unused_argument(subject, position)
    if not name:
        return None
    return OfBackward(
        "unused",
        f"backward depends on `{name}`, which forward does not use: if a gradient of its own is"
        " meant, declare it (`surrogate` on the class or in a spec); otherwise use it in forward,"
        " or leave it out of backward",
    )


def _unused_argument(subject: Subject, position: int) -> str:
    """The first argument that changes the gradient and not forward."""
    found = list(_moved(subject))[:MOST]
    if not found:
        return ""
    own = _gradient(subject, position, {})
    if own is None or not own.numel():
        return ""
    for name, values in found:
        others = [_gradient(subject, position, {name: value}) for value in values]
        if any(
            other is not None
            and other.shape == own.shape
            and float((other - own).abs().max()) > DEPENDS * float(own.abs().max())
            for other in others
        ) and all(other is not None for other in others):
            return name
    return ""


def _moved(subject: Subject) -> Iterator[tuple[str, list[Any]]]:
    """Arguments that get no gradient, and their values moved."""
    inputs = {item.name for item in subject.problem.inputs}
    for name, value in subject.arguments():
        if name in inputs:
            continue
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        if (floating and value.layout == torch.strided) or type(value) is float:
            yield name, [value * factor for factor in FACTORS]


def _gradient(subject: Subject, position: int, values: dict[str, Any]) -> torch.Tensor | None:
    """The gradient with arguments of these values; None where forward returns something else."""
    problem = subject.problem
    there = problem.at(with_values(subject, subject.sample, values)) if values else problem
    names = [item.name for item in subject.run.outputs if item.differentiable]
    probe = subject.first_order.judgement.probe(0)
    try:
        if values and not same_outputs(there.forward(), subject.run.outputs):
            return None
        found = there.pull(dict(zip(names, probe.cotangents, strict=True)))[position]
    except (OpRaised, ValueError, IndexError):
        return None
    finally:
        if there is not problem:
            problem.forward_calls += there.forward_calls
            problem.backward_calls += there.backward_calls
    if found is None or not all_finite(dense(found)):
        return None
    return widened(dense(found)).detach()
