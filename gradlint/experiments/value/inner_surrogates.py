"""Surrogates inside of an op: a module or function that calls a Function which rounds or steps.

Autograd puts such an op together, and its gradient is that of the surrogate: a spiking layer has
the gradient of its spikes' surrogate, a quantized layer that of rounding taken as the identity.
Whether this is all that is wrong can be told without knowing what the surrogate is:

- a Function that is constant around the point (a spike, a sign) has the derivative zero, so without
  its gradient that of the op must be the derivative;
- a Function that rounds what it scales is not constant where the scale is taken from the input. Its
  gradient is meant for forward with rounding taken as the identity, of which that of the op must
  then be the derivative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch
from torch.autograd.function import _SingleLevelFunction
from torch.overrides import TorchFunctionMode

from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import says_surrogate
from gradlint.model.report import Finding
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.ops.eager import eager
from gradlint.trace.applied import applies_in_cpp, apply_replaced
from gradlint.trace.op_io import OpRaised

#: Functions that round.
ROUNDING = frozenset(
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in ("round", "floor", "ceil", "trunc", "fix")
)

#: Share by which arguments are moved, up and down, to see whether a Function is constant there
#: (heuristic: a step lies within so little of few values, and any slope shows).
MOVE = 2.0**-20

#: Factors by which an argument is multiplied to see what a surrogate is beyond its bounds, and the
#: calls that are looked at.
_FACTORS = (1.0, 30.0, -30.0)
_MOST_CALLS = 4


def soften_inner_surrogates(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about wrong gradients that Functions inside of the op explain, which round or step;
    where their documentation tells of a surrogate, it explains them.

    Args:
        subject: the op; a Function is left alone, which has a gradient of its own to answer for.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    if not wrong or subject.op.function is not None or applies_in_cpp():
        return
    for omitted in (_Stepping, _Rounding):
        seen = omitted()
        names = {item.input or "" for item in wrong} if _is_right(subject, wrong, seen) else set()
        if not names or not seen.functions:
            continue
        who = ", ".join(f"`{function.__name__}`" for function in seen.functions)
        said = all(map(says_surrogate, seen.functions))
        for item in wrong:
            item.cause, item.cause_text = None, f"{seen.words} {who}: all else is right"
            item.help = (
                f"if the surrogate of {who} is meant, check the Functions themselves, with their"
                " surrogates declared (`surrogate` on the class or in a spec)"
            )
            if said:
                item.grounds = replace(item.grounds, explained="surrogate")
            else:
                item.severity = "warning"
        return


def explain_steps_inside(subject: Subject, findings: Sequence[Finding]) -> None:
    """Let documentation explain gradients of inputs in which a module or function is piecewise
    constant, where it calls a Function that tells of a surrogate, and that passes gradients on as
    they are or between -1 and 1: a layer with binary weights.

    Args:
        subject: the op; a Function is left alone, as above.
        findings: wrong gradients of such inputs; they are changed.
    """
    wrong = [item for item in findings if not item.grounds.explained]
    if not wrong or subject.op.function is not None or applies_in_cpp():
        return
    seen = _Stepping()
    if not _is_right(subject, wrong, seen) or not all(map(says_surrogate, seen.functions)):
        return
    if seen.calls and all(itertools.starmap(_passes_on, seen.calls)):
        for item in wrong:
            item.grounds = replace(item.grounds, explained="surrogate")


def _passes_on(function: type, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the gradient of the one argument that requires grad is that of the output, or is so
    where the argument lies between -1 and 1, far beyond these bounds as well."""
    moved = [value for value in args if isinstance(value, torch.Tensor) and value.requires_grad]
    if len(moved) != 1:
        return False
    forms = {True, False}
    for factor in _FACTORS:
        x = (factor * moved[0].detach()).requires_grad_()
        given = [x if value is moved[0] else value for value in args]
        with torch.enable_grad(), suppress(Exception):
            returned = _applied(function, given, kwargs)
            v = torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape).to(x)
            (found,) = torch.autograd.grad(returned, x, v)
            inside = x.abs() <= 1.0
            forms = {form for form in forms if torch.equal(found, v * inside if form else v)}
            continue
        return False
    return bool(forms)


class _Stepping:
    """Leaves out the gradients of Functions that are constant around their arguments."""

    words = "the gradient is that of a surrogate for the steps of"

    def __init__(self) -> None:
        self.functions: dict[type, None] = {}
        #: The first calls of such Functions.
        self.calls: list[tuple[type, Sequence[Any], dict[str, Any]]] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """While this lasts, such gradients are left out."""
        with eager(), apply_replaced(self._apply_of(self)):
            yield

    @staticmethod
    def _apply_of(seen: _Stepping) -> Callable[..., Any]:
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            returned = _applied(cls, args, kwargs)
            if not _has_gradient(returned) or not _is_constant(cls, args, kwargs, returned):
                return returned
            seen.functions[cls] = None
            if len(seen.calls) < _MOST_CALLS:
                seen.calls.append((cls, args, kwargs))
            parts = returned if isinstance(returned, tuple) else (returned,)
            cut = tuple(p.detach() if isinstance(p, torch.Tensor) else p for p in parts)
            return cut if isinstance(returned, tuple) else cut[0]

        return apply


class _Rounding:
    """Takes rounding inside of Functions as the identity."""

    words = "the gradient is right with rounding taken as the identity in"

    def __init__(self) -> None:
        self.functions: dict[type, None] = {}
        self._inside: list[type] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """While this lasts, Functions do not round."""
        with eager(), apply_replaced(self._apply_of(self)), _RoundingOmitted(self._note):
            yield

    def _note(self) -> bool:
        if self._inside:
            self.functions[self._inside[-1]] = None
        return bool(self._inside)

    @staticmethod
    def _apply_of(seen: _Rounding) -> Callable[..., Any]:
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            seen._inside.append(cls)
            try:
                return _applied(cls, args, kwargs)
            finally:
                seen._inside.pop()

        return apply


class _RoundingOmitted(TorchFunctionMode):
    """Functions that round return what they are given.

    Args:
        is_inside: asked at each call whether this is meant.
    """

    def __init__(self, is_inside: Callable[[], bool]) -> None:
        super().__init__()
        self._is_inside = is_inside

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in ROUNDING and args and self._is_inside():
            return args[0].clone()
        return func(*args, **(kwargs or {}))


def _is_right(subject: Subject, wrong: Sequence[Finding], seen: _Stepping | _Rounding) -> bool:
    """Whether the gradients found wrong are derivatives with surrogates left out."""
    problem = subject.problem.through(lambda invoke: invoke)
    problem.put(dict(enumerate(subject.problem.values())))
    problem.surroundings = seen.around
    names = {item.input for item in wrong}
    asked = [k for k, item in enumerate(problem.inputs) if item.name in names]
    try:
        function = first_order(problem)
        if not seen.functions:
            return False
        if not function.outputs:  # nothing is left that could be wrong
            return True
        judged = judge(function, seed=subject.seed, inputs=asked).inputs
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    return all(item.verdict in (AGREES, ROUNDED) for item in judged)


def _applied(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What ``function.apply`` returns where nothing stands in its place."""
    return super(_SingleLevelFunction, function).apply(*args, **kwargs)


def _has_gradient(returned: Any) -> bool:
    parts = returned if isinstance(returned, tuple) else (returned,)
    return any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)


def _is_constant(
    function: type, args: Sequence[Any], kwargs: dict[str, Any], returned: Any
) -> bool:
    """Whether a Function returns the same where arguments that require grad are moved a little."""
    before = [
        p for p in (returned if isinstance(returned, tuple) else (returned,)) if p is not None
    ]
    for share in (MOVE, -MOVE):
        moved = [_moved(value, share) for value in args]
        named = {name: _moved(value, share) for name, value in kwargs.items()}
        after: Any = None
        with torch.no_grad(), torch.random.fork_rng(devices=[]), suppress(Exception):
            after = _applied(function, moved, named)
        found = [p for p in (after if isinstance(after, tuple) else (after,)) if p is not None]
        if len(found) != len(before) or not all(map(_same, before, found)):
            return False
    return True


def _moved(value: Any, share: float) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone()
    return copy * (1.0 + share) if value.requires_grad else copy


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return bool(type(one) is type(other) and one == other)
