"""One forward and up to four backwards of its graph that detect writes: the tensors that the op got
and saved are compared, element by element, with copies made before.

Values are compared rather than version counters, which kernels bypass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.experiments.baseline_comparison import Difference, compare, share_equal_tensors
from gradlint.experiments.state.residual_use import Gradients, addable, residuals, unless_expected
from gradlint.experiments.subject import Subject
from gradlint.model.op import Op
from gradlint.ops.backed import is_backed
from gradlint.trace.graph import memory_of, memory_owner, of_the_user, python_nodes, saved_by
from gradlint.trace.op_io import Handed, OpRaised, Output
from gradlint.trace.problem import Problem
from gradlint.trace.random import common_random_numbers, generator_states
from gradlint.trace.written import ArgumentWritten, argument_name, marked_dirty, written_arguments


@dataclass(frozen=True)
class WrittenTensor:
    """A tensor that was written to.

    Args:
        name: of the argument, output or attribute.
        phase: "forward" or "backward".
        difference: the worst element, and how many.
        handed: where the op got it as an argument.
        declared: whether forward said so: ``mark_dirty``, a schema, or autograd's own record.
        bumped: whether its version counter shows a write.
        function: the Function inside of which it happened, where known.
        kin: what it shares memory with: "input", "argument", "output", "intermediate".
    """

    name: str
    phase: str
    difference: Difference
    handed: Handed | None = None
    declared: bool = False
    bumped: bool = False
    function: Any = None
    kin: str = ""


@dataclass
class GuardedRun:
    """What the guarded run saw.

    Args:
        error: what forward or the first backward raised.
        arguments, cotangents, saved: tensors that were written to.
        inner: intermediate tensors that Functions inside of the op wrote to.
        first, second: gradients of the first and the second backward under the same random
            numbers; other: of one under other random numbers, made where backward draws any.
        residual: gradients of one in which inputs are added to outputs (``added``: output name →
            position), where they differ in any bit from what ``first`` implies.
        second_error, other_error, residual_error: what those raised.
        draws: whether forward, and whether backward, draw random numbers.
        outputs: values that forward returned, by name.
        aliases: outputs in the memory of an argument: (output, argument).
        python: whether a Python Function of user code is in the graph.
        freed: whether the op freed the memory of an argument or of a cotangent.
        grads: inputs to whose ``.grad`` backward wrote by itself, beside what it returned, each
            with the Function of the last call.
    """

    error: OpRaised | None = None
    arguments: list[WrittenTensor] = field(default_factory=list)
    cotangents: list[WrittenTensor] = field(default_factory=list)
    saved: list[WrittenTensor] = field(default_factory=list)
    inner: list[WrittenTensor] = field(default_factory=list)
    first: Gradients = field(default_factory=list)
    second: Gradients | None = None
    second_error: OpRaised | None = None
    other: Gradients | None = None
    other_error: OpRaised | None = None
    residual: Gradients | None = None
    residual_error: OpRaised | None = None
    added: dict[str, int] = field(default_factory=dict)
    draws: tuple[bool, bool] = (False, False)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    aliases: list[tuple[str, str]] = field(default_factory=list)
    python: bool = False
    freed: bool = False
    grads: list[tuple[str, Any]] = field(default_factory=list)


def same_values(now: torch.Tensor, was: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and values; NaN equals NaN, memory that was
    freed nothing, and a tensor of the user's own class that refuses to be compared anything."""
    if now.shape != was.shape or now.dtype != was.dtype or not is_backed(now):
        return False
    try:
        return torch.equal(now, was)
    except (RuntimeError, NotImplementedError):  # chalf, quantised
        pass
    try:
        return compare(0, "", now, was, None) is None
    except (RuntimeError, NotImplementedError):
        return True


def make_guarded(subject: Subject) -> GuardedRun:
    """One forward and two or three backwards in which nothing may be written to."""
    return run_guarded(subject.problem, subject.run.cotangents, declared_writes(subject.op))


def run_guarded(
    problem: Problem, cotangents: dict[str, torch.Tensor], written: set[str]
) -> GuardedRun:
    """Run ``problem`` once under guard.

    Args:
        cotangents: output name → cotangent, for the differentiable outputs.
        written: arguments that a schema declares to be written to.
    """
    found = GuardedRun()
    try:
        with (
            problem.handing_over() as handed,
            marked_dirty() as dirty,
            written_arguments() as inner,
        ):
            with common_random_numbers(problem.seed):
                before = generator_states()
            leaves, outputs = problem.linearize()
        draws = before != generator_states() or problem.own_generators.have_moved()
        problem.draws = draws
        found.outputs = {item.name: item.value.detach().clone() for item in outputs}
        declared = _declared(handed, dirty, written)
        for item in handed:
            found.arguments += _written(
                item.name, "forward", item.tensor, item.value, item, declared
            )
        found.inner = _inner_writes(inner, handed, dirty)
        found.aliases = _aliases(handed, outputs, declared)
        chosen = [item for item in outputs if item.name in cotangents and item.differentiable]
        if chosen:
            _run_backwards(problem, found, handed, leaves, chosen, cotangents, draws)
    except OpRaised as raised:
        found.error = raised
    return found


def _run_backwards(
    problem: Problem,
    found: GuardedRun,
    handed: Sequence[Handed],
    leaves: Sequence[torch.Tensor],
    chosen: Sequence[Output],
    cotangents: dict[str, torch.Tensor],
    draws: bool,
) -> None:
    named = [(item.name, item.value) for item in chosen]
    nodes = python_nodes([item.value for item in chosen])
    found.python = bool(nodes)
    kept = [
        (node, name, tensor, tensor.detach().clone())
        for node in nodes
        for name, tensor in saved_by(node)
        if is_backed(tensor)
    ]
    entered = [(item, item.tensor.detach().clone()) for item in handed if is_backed(item.tensor)]
    received: list[tuple[Any, int, torch.Tensor, torch.Tensor]] = []
    handles = [node.register_prehook(_receiver(node, received)) for node in nodes]

    def pull(seed: int, given: list[torch.Tensor], ends: Sequence[torch.Tensor] = ()) -> Gradients:
        tensors = ends or [item.value for item in chosen]
        with common_random_numbers(seed):
            gradients = problem.backward(tensors, leaves, given, retain_graph=True, as_given=True)
        return share_equal_tensors(gradients, found.first or [None] * len(gradients))

    def copies() -> list[torch.Tensor]:
        return [cotangents[item.name].clone() for item in chosen]

    given = copies()
    with common_random_numbers(problem.seed):
        before = generator_states()
    problem.own_generators.reset()
    found.first = pull(problem.seed, given)
    found.draws = draws, before != generator_states() or problem.own_generators.have_moved()
    found.grads = [
        (problem.inputs[position].name, _function(chosen[0]))
        for position in sorted(problem.written_grads)
    ]
    for handle in handles:
        handle.remove()
    found.freed = not all(map(is_backed, [*given, *(item.tensor for item in handed)]))
    for item, mine in zip(chosen, given, strict=True):
        was = cotangents[item.name]
        found.cotangents += _written(item.name, "backward", mine, was, function=_function(item))
    if not found.cotangents:
        for node, index, mine, was in received:
            name = f"grad_outputs[{index}]"
            found.cotangents += _written(name, "backward", mine, was, function=node._forward_cls)
    for node, name, tensor, was in kept:
        kin, whom = memory_owner(tensor, handed, named)
        found.saved += _written(
            whom or name, "backward", tensor, was, function=node._forward_cls, kin=kin
        )
    for argument, was in entered:
        found.arguments += _written(argument.name, "backward", argument.tensor, was, argument)
    problem.own_generators.reset()
    found.second, found.second_error = _gradients_or_error(lambda: pull(problem.seed, copies()))
    if found.draws[1]:
        found.other, found.other_error = _gradients_or_error(
            lambda: pull(problem.seed + 1, copies())
        )
    if not found.cotangents and found.second is not None:
        found.added = addable(chosen, leaves)
    if found.added:
        problem.own_generators.reset()
        sums = residuals(chosen, leaves, found.added)
        tried, found.residual_error = _gradients_or_error(
            lambda: pull(problem.seed, copies(), sums)
        )
        found.residual = tried and unless_expected(tried, found.first, cotangents, found.added)


def _gradients_or_error(pull: Callable[[], Gradients]) -> tuple[Gradients | None, OpRaised | None]:
    try:
        return pull(), None
    except OpRaised as raised:
        return None, raised


def _function(item: Output) -> Any:
    return getattr(item.value.grad_fn, "_forward_cls", None)


def _receiver(node: Any, received: list[Any]) -> Callable[[Any], None]:
    """A hook that keeps the gradients that ``node`` gets, and copies of them."""

    def keep(gradients: Any) -> None:
        for index, gradient in enumerate(gradients):
            if isinstance(gradient, torch.Tensor) and is_backed(gradient):
                received.append((node, index, gradient, gradient.detach().clone()))

    return keep


def _written(
    name: str,
    phase: str,
    tensor: torch.Tensor,
    was: torch.Tensor,
    handed: Handed | None = None,
    declared: Callable[[Handed], bool] | None = None,
    function: Any = None,
    kin: str = "",
) -> list[WrittenTensor]:
    """The one :class:`WrittenTensor` where ``tensor`` is not ``was``; else nothing."""
    if tensor.layout != torch.strided or was.layout != torch.strided or tensor.is_nested:
        return []
    if not is_backed(tensor):
        if kin:
            return []  # what was saved and freed on purpose is made anew before it is used
        tensor = torch.full_like(was, math.nan)  # it holds nothing that its owner could read
    now = tensor.detach()
    if same_values(now, was):
        return []
    difference = compare(0, name, now, was, None)
    if difference is None:
        return []
    said = handed is not None and declared is not None and declared(handed)
    bumped = tensor._version > 0
    return [WrittenTensor(name, phase, difference, handed, said, bumped, function, kin)]


def _inner_writes(
    written: Sequence[ArgumentWritten], handed: Sequence[Handed], dirty: set[int]
) -> list[WrittenTensor]:
    """Undeclared writes of inner Functions to intermediate tensors."""
    known = dirty | {where for item in handed if (where := memory_of(item.tensor)) is not None}
    found = []
    for item in written:
        if of_the_user(item.function) and memory_of(item.tensor) not in known:
            name = argument_name(item.function, item.position)
            found += _written(name, "forward", item.now, item.was, function=item.function)
    return found


def _declared(
    handed: Sequence[Handed], dirty: set[int], written: set[str]
) -> Callable[[Handed], bool]:
    """Whether forward said that it writes to an argument."""

    def declared(item: Handed) -> bool:
        tensor = item.tensor
        if item.name in written or memory_of(tensor) in dirty:
            return True
        # An in-place op of a plain callable is recorded by autograd: the tensor is then a result.
        fresh = "CloneBackward0" if item.position is not None else ""
        return tensor.grad_fn is not None and tensor.grad_fn.name() != fresh

    return declared


def _aliases(
    handed: Sequence[Handed], outputs: Sequence[Output], declared: Callable[[Handed], bool]
) -> list[tuple[str, str]]:
    """Outputs in the memory of an argument that forward did not write to."""
    found = []
    for output in outputs:
        where = memory_of(output.value)
        if where is None or not output.differentiable or not output.value.numel():
            continue
        if any(output.value is item.tensor for item in handed):
            continue  # a plain callable returns its argument
        for item in handed:
            if memory_of(item.tensor) == where and not declared(item):
                found.append((output.name, item.name))
                break
    return found


def declared_writes(op: Op) -> set[str]:
    """Names of the arguments that the schema of a library op marks as written: ``Tensor(a!) x``."""
    if op.kind != "library":
        return set()
    call: Any = getattr(op.call, "_opoverload", op.call)
    names = call.overloads() if hasattr(call, "overloads") else None
    overloads = [call] if names is None else [getattr(call, name) for name in names]
    return {
        argument.name
        for overload in overloads
        if hasattr(overload, "_schema")
        for argument in overload._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }
