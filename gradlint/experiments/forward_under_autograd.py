"""An op without its backward: what autograd makes of the operations of its forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.experiments.subject import Subject
from gradlint.inputs.stand_ins import with_bound_closures
from gradlint.targets.nodes import LIBRARY_FUNCTIONS
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.tightened import Tightened

#: Calls of PyTorch's functions that a forward may make under autograd. A graph of 100 000 nodes in
#: a row ended the process where it was walked and let go.
MOST_CALLS = 5000


def through_autograd(
    subject: Subject, problem: Problem | None = None, most: int = MOST_CALLS
) -> Problem | None:
    """The op of ``subject`` without its backward: forward under autograd, in a module or callable
    that of the Functions inside; None where other Functions take part, and where no Function is
    called by its class's ``apply`` and the op is not made by ``custom_op``.

    Args:
        problem: the op on the sample that is meant; default the subject's own.
        most: calls of PyTorch's functions that forward may make.
    """
    given = problem or subject.problem
    problem = without_backward(subject, given) or _plainly_inside(subject, given)
    if problem is None:
        return None
    problem.put(dict(enumerate(given.values())))
    problem.surroundings = lambda: Tightened(most=most)
    try:
        _, outputs = problem.linearize()
    except OpRaised:
        return None
    problem.surroundings = None  # no mode may stand between forward and one that asks who called
    nodes = [item.value.grad_fn for item in outputs if item.differentiable]
    return None if not nodes or has_functions(nodes) else problem


def values_on_the_way(
    subject: Subject, values: Sequence[torch.Tensor], shape: Sequence[int]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The inputs, and what forward computes from them by PyTorch's functions before it returns: the
    first tensors of one shape, connected to the inputs by a graph. None where it is no Function.

    Raises:
        OpRaised: when forward raises.
    """
    problem = without_backward(subject, subject.problem)
    if problem is None:
        return [], []
    kept = _Kept(tuple(shape))
    problem.surroundings = lambda: kept
    leaves, _ = problem.linearize(values)
    usable = [value for value in kept.values if not has_functions([value.grad_fn])]
    return leaves, usable


def without_backward(subject: Subject, given: Problem) -> Problem | None:
    """The forward that is written, called by itself, or None where it is neither that of a Function
    nor of ``custom_op``."""
    function, written = subject.op.function, subject.op.defining
    if function is None and (subject.op.kind != "library" or written is None):
        return None

    def plainly(_: Any) -> Any:
        if function is None:
            return lambda args, kwargs, state: written(*args, **kwargs)
        forward = with_bound_closures(lambda *args: forward_of(function, args))
        return lambda args, kwargs, state: forward(*args)

    return given.through(plainly)


def _plainly_inside(subject: Subject, given: Problem) -> Problem | None:
    """The op with its Functions' forwards in place of these Functions, or None where none of the
    user's ran. A Function that is called by another name than its class's ``apply`` stays."""
    ran = dict.fromkeys(node.function for node in subject.run.nodes)
    functions = [one for one in ran if one.__module__ != LIBRARY_FUNCTIONS]
    if subject.op.function is not None or not functions:
        return None

    def plainly(invoke: Any) -> Any:
        def called(*given: Any) -> Any:
            with _applied_plainly(functions):
                return invoke(*given)

        return called

    return given.through(plainly)


@contextmanager
def _applied_plainly(functions: Sequence[type]) -> Iterator[None]:
    """In the body, ``apply`` of each of ``functions`` is its forward, called by itself."""
    with ExitStack() as stack:
        for function in functions:
            own = vars(function).get("apply")
            plain = staticmethod(partial(_forward_of_arguments, function))
            type.__setattr__(function, "apply", plain)
            if own is None:
                stack.callback(type.__delattr__, function, "apply")
            else:
                stack.callback(type.__setattr__, function, "apply", own)
        yield


def _forward_of_arguments(function: Any, *args: Any) -> Any:
    return forward_of(function, args)


#: Tensors that are kept at most (heuristic: the value of which a forward takes a step comes early).
_MOST_KEPT = 32


class _Kept(TorchFunctionMode):
    """Keeps the tensors of one shape that PyTorch's functions return, if they have a graph."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.values: list[torch.Tensor] = []
        self._shape = shape

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        value = func(*args, **(kwargs or {}))
        if (
            isinstance(value, torch.Tensor)
            and value.grad_fn is not None
            and value.shape == self._shape
            and len(self.values) < _MOST_KEPT
        ):
            self.values.append(value)
        return value


def forward_of(function: Any, args: Sequence[Any]) -> Any:
    """What forward of a Function returns, called by itself: autograd follows what it does."""
    separate = function.setup_context is not torch.autograd.Function.setup_context
    if separate:
        return function.forward(*args)
    return function.forward(_Context(args), *args)


class _Context(SimpleNamespace):
    """What forward gets as ``ctx``: it takes everything, and nothing is done with it."""

    def __init__(self, args: Sequence[Any]) -> None:
        flags = tuple(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
        super().__init__(needs_input_grad=flags)

    def save_for_backward(self, *tensors: Any) -> None:
        """Take them."""

    save_for_forward = mark_dirty = mark_non_differentiable = save_for_backward

    def set_materialize_grads(self, value: bool) -> None:
        """Take it."""


def has_functions(nodes: Sequence[Any]) -> bool:
    """Whether a Function written in Python is in the graph behind ``nodes``."""
    seen: set[Any] = set()
    left = [node for node in nodes if node is not None]
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        left += [following for following, _ in node.next_functions if following is not None]
    return False
