"""One instrumented run: what backward really returned, before the engine sums, casts or rejects."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from gradlint.model.sample import positional_names
from gradlint.targets.nodes import registered_backward
from gradlint.trace.applied import Applied, NodeRun, forward_signature, watch_apply
from gradlint.trace.coverage import Coverage
from gradlint.trace.cpp_backward import called_again, listening, native_nodes
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

#: Names of the method that computes gradients.
_NAMES = ("backward", "vjp")

#: The multiplier of Knuth's MMIX generator.
_SPREAD = 6364136223846793005


@dataclass
class Seen:
    """``line``: line of the last ``return`` that the watched function executed, or None."""

    line: int | None = None


@contextmanager
def executed_return(function: Any) -> Iterator[Seen]:
    """Note which ``return`` of ``function``, under its decorators, this thread executes."""
    seen = Seen()
    code = innermost_code(function)
    if code is None:
        yield seen
        return

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is code:
            seen.line = frame.f_lineno

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(before)


def innermost_code(function: Any) -> CodeType | None:
    """Code object of the user's function under ``functools.wraps``, partials and plain wrappers.

    A wrapper without ``__wrapped__`` is unwrapped if its closure holds a function called
    ``backward`` or ``vjp``, or only one function at all.
    """
    visited: set[int] = set()
    code: CodeType | None = None
    current: Any = function
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        if isinstance(current, functools.partial):
            current = current.func
            continue
        found = getattr(current, "__code__", None)
        if isinstance(found, CodeType):
            code = found
        current = (
            getattr(current, "__wrapped__", None)
            or getattr(current, "__func__", None)
            or _enclosed(current)
        )
    return code


def _enclosed(function: Any) -> Callable[..., Any] | None:
    held = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    for content in held:
        if callable(content) and getattr(content, "__name__", "") in _NAMES:
            return content
        registered = getattr(content, "_backward_fn", None)  # torch.library's registration
        if callable(registered):
            return registered
    functions = [content for content in held if isinstance(content, FunctionType)]
    wrapper = getattr(function, "__name__", "") not in _NAMES
    return functions[0] if wrapper and len(functions) == 1 else None


def saved_tensors(problem: Problem) -> list[tuple[str, torch.Tensor]]:
    """Tensors saved for backward, each with the input's or output's name, or ``saved[k]``.

    This runs a separate forward without a backward, because under saved-tensor hooks PyTorch does
    not notice a saved tensor that is modified in place, and torch.func raises.

    Returns:
        (name, tensor), each tensor once; empty if the op does not run under such hooks.
    """
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor.detach())
        return tensor

    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            leaves, outputs = problem.linearize()
    except OpRaised:
        return []
    names = [(item.name, leaf) for item, leaf in zip(problem.inputs, leaves, strict=True)]
    return _named(packed, names, outputs)


def _named(
    packed: list[torch.Tensor],
    inputs: list[tuple[str, torch.Tensor]],
    outputs: list[Output],
) -> list[tuple[str, torch.Tensor]]:
    known = {_key(tensor): name for name, tensor in inputs}
    for output in outputs:
        known.setdefault(_key(output.value), output.name)
    result: dict[tuple[object, ...], tuple[str, torch.Tensor]] = {}
    unnamed = 0
    for tensor in packed:
        key = _key(tensor)
        if key in result:
            continue
        name = known.get(key)
        if name is None:
            name, unnamed = f"saved[{unnamed}]", unnamed + 1
        result[key] = (name, tensor)
    return list(result.values())


def _key(tensor: torch.Tensor) -> tuple[object, ...]:
    """A key that is equal for two tensors with the same memory, shape, strides and dtype."""
    dense = tensor.layout == torch.strided and not tensor.is_nested
    if not dense or tensor.device.type == "meta" or not tensor.numel():
        return (id(tensor),)
    try:
        pointer = tensor.data_ptr()
    except RuntimeError:  # subclasses without storage
        return (id(tensor),)
    return (pointer, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


@dataclass
class RunRecord:
    """One forward and one backward with random cotangents, recorded.

    Args:
        outputs: what forward returned (empty if it raised).
        cotangents: output name → cotangent used.
        gradients: what the engine delivered for each differentiable input, or None if it raised.
        nodes: every Python Function backward that ran, in order.
        native: every C++ Function backward that ran, in order.
        own: the backward of the op's own Function, or, if the op is one C++ Function, of that.
        error: what the op or the engine raised, or None.
        saved: tensors saved for backward, as (name, tensor).
    """

    outputs: list[Output] = field(default_factory=list)
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: list[torch.Tensor | None] | None = None
    nodes: list[NodeRun] = field(default_factory=list)
    native: list[NodeRun] = field(default_factory=list)
    own: NodeRun | None = None
    error: OpRaised | None = None
    saved: list[tuple[str, torch.Tensor]] = field(default_factory=list)


def record(problem: Problem, coverage: Coverage | None = None) -> RunRecord:
    """Run ``problem`` once, watching the boundary between the user's backward and the engine.

    Args:
        problem: the op on its sample; cotangents are drawn from ``problem.seed``.
        coverage: notes what of the user's code runs, if given.

    Returns:
        The record. Exceptions of the op and of the engine are in ``error``; what was recorded
        before them is kept.
    """
    run = RunRecord()
    watched = coverage if coverage is not None and not coverage.full else None
    try:
        with watch_apply() as applied, watched.watching() if watched else nullcontext():
            leaves, run.outputs = problem.linearize()
        chosen = [output for output in run.outputs if output.differentiable]
        run.cotangents = draw_cotangents(chosen, problem.seed)
        native = native_nodes([output.value for output in chosen])
        with listening(native) as given:
            try:
                with (
                    _watch_backward(problem, applied, leaves, run.nodes),
                    watched.in_backward() if watched else nullcontext(),
                ):
                    cotangents = [run.cotangents[output.name] for output in chosen]
                    # The graph is retained for the nodes that are called again.
                    run.gradients = problem.backward(
                        chosen, leaves, cotangents, retain_graph=bool(native) or None
                    )
            finally:
                run.native = called_again(problem, given, leaves)
    except OpRaised as error:
        run.error = error
    if coverage is not None:
        coverage.add_files_of(node.function for node in run.nodes)
        if run.native:
            coverage.add_native()
    if problem.op.function is not None:
        mine = (node for node in run.nodes if node.function is problem.op.function)
        run.own = next(mine, None)
    elif len(run.native) == 1 and {output.value.grad_fn for output in chosen} == set(native):
        run.own = run.native[0]
    if run.outputs:
        run.saved = saved_tensors(problem)
    return run


def draw_cotangents(outputs: list[Output], seed: int) -> dict[str, torch.Tensor]:
    """Random signed cotangents, by output name, with the output's dtype, shape and device."""
    # Inputs may have been drawn from the same seed, and cotangents must not be multiples of them.
    generator = torch.Generator().manual_seed((seed + 1) * _SPREAD % 2**63)
    return {output.name: _cotangent(output.value.detach(), generator) for output in outputs}


def _cotangent(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    wide = torch.complex128 if like.is_complex() else torch.float64
    if like.is_nested:
        # A nested tensor cannot be filled at random by its shape; the output itself serves as well.
        return like.clone()
    drawn = torch.randn(like.shape, generator=generator, dtype=wide)
    return drawn.to(device=like.device, dtype=like.dtype)


@contextmanager
def _watch_backward(
    problem: Problem, applied: list[Applied], leaves: list[torch.Tensor], nodes: list[NodeRun]
) -> Iterator[None]:
    """Append a :class:`NodeRun` to ``nodes`` for every Python Function's backward of the body.

    The engine calls ``apply`` of the node, in any thread. The node's class inherits it from
    ``BackwardCFunction``. Replacing it there covers inherited, decorated and non-static backwards,
    and nodes that the graph hides behind in-place views.
    """
    slots = {id(leaf): index for index, leaf in enumerate(leaves)}
    before = {
        name: getattr(BackwardCFunction, name)
        for name in ("apply", "apply_boxed")
        if hasattr(BackwardCFunction, name)
    }

    def watched(original: Any) -> Any:
        def apply(node: Any, *args: Any) -> Any:
            entry = _entry(problem, node, applied, slots)
            boxed = len(args) == 1 and isinstance(args[0], list)
            entry.grad_outputs = tuple(args[0]) if boxed else args
            nodes.append(entry)
            try:
                with executed_return(_user_backward(entry.function)) as seen:
                    entry.returned = original(node, *args)
            except BaseException as error:
                entry.raised = error
                raise
            entry.line = seen.line
            return entry.returned

        return apply

    for name, original in before.items():
        setattr(BackwardCFunction, name, watched(original))
    try:
        yield
    finally:
        for name, original in before.items():
            setattr(BackwardCFunction, name, original)


def _entry(problem: Problem, node: Any, applied: list[Applied], slots: dict[int, int]) -> NodeRun:
    function = node._forward_cls
    needs = tuple(bool(flag) for flag in node.needs_input_grad)
    call = next((item for item in applied if item.node is node), None)
    if call is not None and len(call.metas) != len(needs):
        call = None
    elif call is None:
        # In-place on a view: the output's grad_fn is a CopySlices around the node.
        same = [i for i in applied if i.function is function and len(i.metas) == len(needs)]
        call = same[0] if len(same) == 1 else None
    metas = call.metas if call else (None,) * len(needs)
    none = (None,) * len(needs)
    leaves = tuple(slots.get(key) for key in call.leaves) if call else none
    reached = tuple(slots.get(key or 0) for key in call.reached) if call else none
    known = call is not None
    is_tensor = tuple(m is not None for m in metas) if known else needs
    names = _argument_names(problem, function, len(needs))
    return NodeRun(
        function,
        needs_input_grad=needs,
        is_tensor=is_tensor,
        arguments=names,
        metas=metas,
        leaves=leaves,
        reached=reached,
    )


def _argument_names(problem: Problem, function: type, count: int) -> tuple[str, ...]:
    signature = problem.op.signature
    if problem.op.kind != "library" and function is not problem.op.function:
        signature = forward_signature(function)
    return tuple(positional_names(signature, count))


def _user_backward(function: Any) -> Any:
    registered = registered_backward(function)
    if registered is not None:
        return registered
    vjp = getattr(function, "vjp", None)
    inherited = torch.autograd.Function.vjp
    return getattr(function, "backward", None) if vjp is inherited else vjp
