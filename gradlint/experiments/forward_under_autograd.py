"""An op without its backward: what autograd makes of the operations of its forward."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.inputs.stand_ins import with_bound_closures
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.tightened import Tightened

#: Calls of PyTorch's functions that a forward may make under autograd. A graph of 100 000 nodes in
#: a row ended the process where it was walked and let go.
MOST_CALLS = 5000


def through_autograd(
    subject: Subject, problem: Problem | None = None, most: int = MOST_CALLS
) -> Problem | None:
    """The op of ``subject`` without its backward: forward under autograd; None where it is neither
    a Function nor made by ``custom_op``, or other Functions take part.

    Args:
        problem: the op on the sample that is meant; default the subject's own.
        most: calls of PyTorch's functions that forward may make.
    """
    function, written = subject.op.function, subject.op.defining
    if function is None and (subject.op.kind != "library" or written is None):
        return None

    def plainly(_: Any) -> Any:
        if function is None:
            return lambda args, kwargs, state: written(*args, **kwargs)
        forward = with_bound_closures(lambda *args: _forward_of(function, args))
        return lambda args, kwargs, state: forward(*args)

    given = problem or subject.problem
    problem = given.through(plainly)
    problem.put(dict(enumerate(given.values())))
    problem.surroundings = lambda: Tightened(most=most)
    try:
        _, outputs = problem.linearize()
    except OpRaised:
        return None
    problem.surroundings = None  # no mode may stand between forward and one that asks who called
    nodes = [item.value.grad_fn for item in outputs if item.differentiable]
    return None if not nodes or _has_functions(nodes) else problem


def _forward_of(function: Any, args: Sequence[Any]) -> Any:
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


def _has_functions(nodes: Sequence[Any]) -> bool:
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
