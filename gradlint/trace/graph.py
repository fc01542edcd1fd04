"""The nodes of an autograd graph, and the tensors that those of Python Functions hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

import torch

from gradlint.targets.nodes import LIBRARY_FUNCTIONS
from gradlint.trace.op_io import Handed

#: Nodes visited at most (heuristic: a module of hundreds of layers has far fewer).
MOST_NODES = 20_000

#: Beginnings of the names of nodes that choose among elements.
_CHOICES = ("WhereBackward", "MaskedFillBackward", "MaskedScatterBackward")

#: Depth to which nested containers on ``ctx`` are searched.
DEEPEST = 3

#: Objects that outlive a call anyway, so that what they hold does not count.
_NOT_HOLDERS = (type, ModuleType, FunctionType, torch.nn.Module)


#: Nodes of a graph that are looked at for the leaves behind a tensor (heuristic: a step size that
#: is laid out anew, or made from its logarithm, has a few).
MOST_NODES = 32


def only_leaf(value: torch.Tensor) -> torch.Tensor | None:
    """The tensor that requires grad from which ``value`` is made, where it is a single one."""
    if value.is_leaf:
        return value
    found: dict[int, torch.Tensor] = {}
    waiting, seen = [value.grad_fn], 0
    while waiting and seen < MOST_NODES:
        node, seen = waiting.pop(), seen + 1
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found[id(leaf)] = leaf
        waiting += [other for other, _ in getattr(node, "next_functions", ()) if other is not None]
    return next(iter(found.values())) if len(found) == 1 and not waiting else None


def nodes_above(outputs: Sequence[torch.Tensor]) -> Iterator[Any]:
    """The nodes of the graph that leads to ``outputs``, each once, :data:`MOST_NODES` at most."""
    waiting: list[Any] = [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]
    seen: set[Any] = set()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions if parent is not None]
            yield node


def chooses_elements(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether something above ``outputs`` takes some elements from one result and some from
    another, as ``torch.where`` does."""
    return any(node.name().startswith(_CHOICES) for node in nodes_above(outputs))


def python_nodes(outputs: Sequence[torch.Tensor]) -> list[Any]:
    """The nodes above ``outputs`` that belong to the user's Python Functions."""
    return [n for n in nodes_above(outputs) if of_the_user(getattr(n, "_forward_cls", None))]


def of_the_user(function: Any) -> bool:
    """Whether a Function is the user's: neither PyTorch's nor gradlint's."""
    module = getattr(function, "__module__", None) or ""
    if module == LIBRARY_FUNCTIONS:  # their ``ctx`` holds the user's tensors
        return True
    return function is not None and module.partition(".")[0] not in ("torch", "gradlint")


def held_tensors(node: Any) -> list[tuple[str, torch.Tensor]]:
    """Tensors in attributes of ``ctx``, also inside containers, with names such as ``ctx.x``."""
    found: list[tuple[str, torch.Tensor]] = []
    for name, value in vars(node).items():
        if not name.startswith("_pt_"):
            with suppress(
                Exception
            ):  # the user's objects may not allow their attributes to be read
                found += _tensors(f"ctx.{name}", value, DEEPEST)
    return found


def _tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)) and depth:
        for index, part in enumerate(value):
            yield from _tensors(f"{name}[{index}]", part, depth - 1)
    elif isinstance(value, dict) and depth:
        for key, part in value.items():
            yield from _tensors(f"{name}[{key!r}]", part, depth - 1)
    elif depth and not isinstance(value, _NOT_HOLDERS):
        for key, part in list(getattr(value, "__dict__", {}).items()):
            yield from _tensors(f"{name}.{key}", part, depth - 1)


def saved_by(node: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors that a node keeps for backward: saved ones, and those held on ``ctx``."""
    try:
        saved = [
            (f"saved_tensors[{index}]", tensor)
            for index, tensor in enumerate(node.saved_tensors)
            if isinstance(tensor, torch.Tensor)
        ]
    except RuntimeError:  # one was modified in place since, so PyTorch does not return them
        saved = []
    return saved + held_tensors(node)


def memory_of(tensor: torch.Tensor) -> int | None:
    """The address of the storage of ``tensor``; None if it has no storage to identify it by."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.device.type == "meta":
        return None
    try:
        pointer = tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # subclasses without storage
        return None
    return pointer or None


def memory_owner(
    tensor: torch.Tensor, handed: Sequence[Handed], outputs: Sequence[tuple[str, torch.Tensor]]
) -> tuple[str, str]:
    """Kind ("output", "input" or "argument") and name of what ``tensor`` shares memory with;
    ("intermediate", "") if there is none."""
    where = memory_of(tensor)
    if where is not None:
        for item in handed:
            if memory_of(item.tensor) == where:
                return ("argument" if item.position is None else "input"), item.name
        for name, output in outputs:
            if memory_of(output) == where:
                return "output", name
    return "intermediate", ""
