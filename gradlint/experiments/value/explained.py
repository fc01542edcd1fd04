"""What else than a wrong backward explains a gradient that differs from measured slopes.

Asked only where one was found to differ: the answers cost calls, and decide how loud the finding
is (``gradlint.checking.severity``).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gradlint.experiments.contract.constants import is_constant
from gradlint.experiments.contract.inner_constants import is_inner_chosen, is_inner_constant
from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.experiments.torch_owned_backward import is_torch_owned_backward
from gradlint.experiments.value.coarse_storage import right_when_kept_fine
from gradlint.experiments.value.guarding_clamps import is_guarded
from gradlint.experiments.value.lost_digits import is_lost_in_rounding
from gradlint.experiments.value.overwritten import right_without_overwriting
from gradlint.experiments.value.solver_tolerance import (
    right_when_converged,
    right_with_other_limits,
)
from gradlint.experiments.value.stopped_gradients import GradientStops, stops_for_constant
from gradlint.inputs.stand_ins import is_stand_in, reads_beyond, watched
from gradlint.model.report import Explanation
from gradlint.numerics.products import dense, widened
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.tightened import LeavesGraph

#: Share of the largest element within which two exact ways to a gradient agree: roundings of a
#: long computation in float64.
EXACT = 1e-9

#: Relative disagreement with differences up to which the agreement of two exact ways outweighs it
#: (heuristic: a function that differences cannot measure is off by 1e-6 to 1e-3).
SLIGHT = 1e-2


def what_explains(
    subject: Subject,
    position: int,
    relative_error: float,
    *,
    chosen: bool = False,
    worst: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The fields ``explained``, ``converged`` and ``torch_owned`` of the grounds of a gradient that
    differs.

    Args:
        position: of the input.
        relative_error: of its gradient, as measured.
        chosen: whether gradlint chose the values of the inputs, although some were given.
        worst: index of the element that is most in error, if one differs by itself.
    """
    none = _why_none(subject, position)
    if none is not None:
        return {"explained": none}
    if is_torch_owned_backward(subject):
        if not _stops_gradients(subject.problem):
            return {"torch_owned": True}
    elif relative_error <= SLIGHT and agrees_with_autograd(subject, position):
        return {"explained": "measurement"}
    sample = subject.sample
    explained: Explanation | None = None
    converged = _when_converged(subject, position, relative_error)
    if converged is not None:
        explained = "solver"
    elif right_when_kept_fine(subject, position):
        explained = "stored"
    elif (sample.kind == "extreme" or sample.moved) and is_lost_in_rounding(subject, position):
        explained = "rounding"
    elif chosen or sample.origin == "inferred":
        element = None if worst is None else (position, worst)
        explained = _by_what_was_chosen(subject, chosen, element)
    return {} if explained is None else {"explained": explained, "converged": converged}


def _why_none(subject: Subject, position: int) -> Explanation | None:
    """Why an input has no gradient that the function depends on."""
    if is_constant(subject, position):
        return "constant"
    if is_inner_constant(subject, position):
        return "no-gradient"
    if is_inner_chosen(subject, position):
        return "asked"
    return "no-gradient" if stops_for_constant(subject, position) else None


def _by_what_was_chosen(
    subject: Subject, chosen: bool, element: tuple[int, Sequence[int]] | None
) -> Explanation | None:
    """What of arguments that gradlint chose explains a gradient that differs at an element."""
    sample = subject.sample
    if right_without_overwriting(subject):
        return "overwritten"
    if is_guarded(subject, at=element):
        return "clamped-guess" if not chosen and sample.label == sample.origin else "clamped"
    if sample.origin == "inferred" and any(map(is_stand_in, sample.args)):
        return "called" if backward_calls_stand_in(subject) else "stand-in"
    return None


def _when_converged(subject: Subject, position: int, relative_error: float) -> float | None:
    found = right_when_converged(subject, position, relative_error)
    return right_with_other_limits(subject, position) if found is None else found


def backward_calls_stand_in(subject: Subject) -> bool:
    """Whether backward calls a function that was guessed, and not to differentiate it: it must
    return what only the function that the op is meant for does, as the product with a transpose.
    So must an attribute of a guessed object that only backward reads.
    Two forward calls and a backward one, where there is such a function."""
    if any(map(reads_beyond, subject.sample.args)):
        return True
    if not any(map(is_stand_in, subject.sample.args)):
        return False
    problem = subject.problem
    with watched() as before, suppress(OpRaised):
        problem.forward(grad=True)
    with watched() as calls, suppress(OpRaised):
        problem.pull(subject.run.cotangents)
    return calls.count(False) > before.count(False)


def agrees_with_autograd(subject: Subject, position: int) -> bool:
    """Whether the op's own backward returns what autograd makes of the operations of its forward.

    This second opinion is there only for a Function whose forward consists of differentiable
    operations, and from which neither numbers nor gradients leave the graph.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forward was not written to run under autograd
        return _agrees_with_autograd(subject, position)


def _agrees_with_autograd(subject: Subject, position: int) -> bool:
    problem = through_autograd(subject)
    if problem is None or _stops_gradients(problem):
        return False
    probe = subject.first_order.judgement.probe(0)
    names = [item.name for item in subject.run.outputs if item.differentiable]
    try:
        vs = dict(zip(names, probe.cotangents, strict=True))
        found = problem.pull(vs)[position]
    except (OpRaised, ValueError):
        return False
    own = probe.gradients[position]
    if found is None or found.shape != own.shape:
        return False
    gap = (widened(dense(found)) - widened(own)).abs()
    size = float(widened(own).abs().max()) if own.numel() else 0.0
    return bool((gap <= EXACT * size).all())


def _stops_gradients(problem: Problem) -> bool:
    """Whether forward stops gradients (``detach``, ``no_grad``), or numbers leave its tensors."""
    stops, leaves = GradientStops(), LeavesGraph()
    try:
        with leaves, stops:  # the inner one, asked first, looks for the frame that called it
            problem.linearize()
    except OpRaised:
        return True
    return bool(stops.lines) or leaves.seen
