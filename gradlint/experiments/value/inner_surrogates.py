"""Surrogates inside of an op: a module or function that calls a Function which rounds or steps.

Autograd puts such an op together, and its gradient is that of the surrogate: a spiking layer has
the gradient of its spikes' surrogate, a quantized layer that of rounding taken as the identity.
Whether this is all that is wrong can be told without knowing what the surrogate is:

- a Function that is constant around the point (a spike, a sign) has the derivative zero, so without
  its gradient that of the op must be the derivative;
- a Function that rounds what it scales is not constant where the scale is taken from the input. Its
  gradient is meant for forward with rounding taken as the identity, of which that of the op must
  then be the derivative;
- a Function whose documentation tells of a surrogate may do either beside what is smooth. With the
  derivative of forward in the place of its gradient that of the op must be the derivative, and its
  gradient a usual surrogate.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.base.errors import GradlintError
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.left_out import (
    Documented,
    Omitted,
    PassingOn,
    RoundingInside,
    Stepping,
    moved_apart,
)
from gradlint.experiments.value.said_of_gradients import says_surrogate
from gradlint.experiments.value.usual_surrogates import (
    passed_through,
    returns_one_number,
    usual_surrogates,
)
from gradlint.model.report import Explanation, Finding
from gradlint.model.sample import Sample
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED
from gradlint.targets.build import from_object
from gradlint.trace.applied import applies_in_cpp
from gradlint.trace.op_io import OpRaised


def soften_inner_surrogates(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about wrong gradients that Functions inside of the op explain, which round or step;
    where their documentation tells of a surrogate, or it is a usual one, it explains them.

    Args:
        subject: the op; a Function is left alone, which has a gradient of its own to answer for.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    if not wrong or subject.op.function is not None or applies_in_cpp():
        return
    if subject.sample.moved and returns_one_number(subject):
        return  # with that option nothing is left of what forward computes: these are no steps
    for omitted in (Stepping, RoundingInside, PassingOn, Documented):
        seen = omitted()
        names = {item.input or "" for item in wrong} if _is_right(subject, wrong, seen) else set()
        if not names or not seen.functions:
            continue
        said, usual = all(map(says_surrogate, seen.functions)), _are_usual(subject, seen)
        if not usual and (seen.usual_only or (seen.in_part and not said)):
            continue
        who = ", ".join(f"`{function.__name__}`" for function in seen.functions)
        for item in wrong:
            item.cause, item.cause_text = None, f"{seen.words} {who}: all else is right"
            item.help = (
                f"if the surrogate of {who} is meant, check the Functions themselves, with their"
                " surrogates declared (`surrogate` on the class or in a spec)"
            )
            if said or usual:
                explained: Explanation = "surrogate" if said else "usual"
                item.grounds = replace(item.grounds, explained=explained)
            else:
                item.severity = "warning"
        return


def explain_steps_inside(subject: Subject, findings: Sequence[Finding]) -> None:
    """Explain gradients of a module or function that is piecewise constant in an input, since it
    calls Functions whose surrogates are usual ones: a layer with binary weights, a gate.

    Args:
        subject: the op; a Function is left alone, as above.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.grounds.explained in (None, "unused")]
    if not wrong or subject.op.function is not None or applies_in_cpp():
        return
    for seen in (Stepping(), RoundingInside(), PassingOn()):
        if not _is_right(subject, wrong, seen) or not _are_usual(subject, seen):
            continue
        said = all(map(says_surrogate, seen.functions))
        explained: Explanation = "surrogate" if said else "usual"
        for item in wrong:
            item.grounds = replace(item.grounds, explained=explained)
        return


def _are_usual(subject: Subject, seen: Omitted) -> bool:
    """Whether the gradients of all Functions seen are derivatives or usual surrogates."""
    called = {function for function, _, _ in seen.calls}
    return called == set(seen.functions) and all(
        _is_usual(subject, function, args, kwargs) for function, args, kwargs in seen.calls
    )


def _is_usual(
    subject: Subject, function: type, args: Sequence[Any], kwargs: dict[str, Any]
) -> bool:
    """Whether the gradients of one call are derivatives or surrogates, one at least: usual ones, or
    such as the documentation tells of, with rounding taken as the identity."""
    given = tuple(_leaf(value) for value in args)
    named = {name: _leaf(value) for name, value in kwargs.items()}
    try:
        sample = Sample("inside", subject.sample.origin, given, named)
        inner = Subject(from_object(function), sample, subject.settings)
        names = [item.name for item in inner.problem.inputs]
        decision = inner.first_order
        verdicts = {
            names[item.index]: verdict
            for item, verdict in zip(decision.judgement.inputs, decision.verdicts, strict=True)
        }
        wrong = {name for name, verdict in verdicts.items() if verdict == DIFFERS}
        if not wrong or any(v not in (AGREES, ROUNDED, DIFFERS) for v in verdicts.values()):
            return False
        left = wrong - usual_surrogates(inner, wrong)
        if left and says_surrogate(function):
            left -= passed_through(inner, _stepped(inner, wrong), left)
        return not left
    except (GradlintError, OpRaised, RuntimeError, ValueError, TypeError):
        return False


#: Share of its size by which an input is moved to see whether forward stands still (heuristic: far
#: less than a step of any staircase, far more than a rounding).
_MOVED = 1e-8


def _stepped(subject: Subject, names: Collection[str]) -> set[str]:
    """Those inputs in which forward takes steps: it is the same where they move a little."""
    values = subject.problem.values()
    before = [item.value for item in subject.problem.forward(values)]
    found = set()
    for k, item in enumerate(subject.problem.inputs):
        if item.name in names:
            moved = [*values[:k], moved_apart(values[k], _MOVED), *values[k + 1 :]]
            after = [output.value for output in subject.problem.forward(moved)]
            if all(map(torch.equal, before, after)):
                found.add(item.name)
    return found


def _leaf(value: Any) -> Any:
    """A tensor as an input of its own."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _is_right(subject: Subject, wrong: Sequence[Finding], seen: Omitted) -> bool:
    """Whether the gradients found wrong are derivatives with surrogates left out."""
    base = subject.problem.in_float64() or subject.problem
    problem = base.through(lambda invoke: invoke)
    values = base.values()
    problem.put(dict(enumerate(values)))
    problem.surroundings = seen.around
    names = {item.input for item in wrong}
    asked = [k for k, item in enumerate(problem.inputs) if item.name in names]
    try:
        function = first_order(problem)
        if not seen.functions:
            return False
        if not function.outputs:  # nothing is left that could be wrong
            return True
        asked = [
            k for k in asked if not any(torch.equal(values[k], value) for value in seen.beside)
        ]
        judged = judge(function, seed=subject.seed, inputs=asked).inputs if asked else []
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    return all(item.verdict in (AGREES, ROUNDED) for item in judged)
