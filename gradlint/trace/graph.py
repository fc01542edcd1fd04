"""The nodes of a graph that Python Functions made, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

import torch

from gradlint.trace.op_io import Handed

#: Nodes looked at (heuristic: a module of hundreds of layers is far below).
MOST_NODES = 20_000

#: Containers inside of containers on ``ctx`` that are looked into.
DEEPEST = 3

#: What lives longer than a call anyway.
_NOT_HOLDERS = (type, ModuleType, FunctionType, torch.nn.Module)

#: Module of the Functions that torch writes around registered operators: what their ``ctx`` holds
#: is the user's.
_GENERATED = "torch._library.autograd"


def python_nodes(outputs: Sequence[torch.Tensor]) -> list[Any]:
    """Nodes above ``outputs`` whose Functions are the user's, each once."""
    waiting = [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]
    seen: set[Any] = set()
    found = []
    while waiting and len(seen) < MOST_NODES:
        node: Any = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        waiting += [parent for parent, _ in node.next_functions if parent is not None]
        if of_the_user(getattr(node, "_forward_cls", None)):
            found.append(node)
    return found


def of_the_user(function: Any) -> bool:
    """Whether a Function is neither PyTorch's own nor gradlint's."""
    module = getattr(function, "__module__", None) or ""
    if module == _GENERATED:
        return True
    return function is not None and module.partition(".")[0] not in ("torch", "gradlint")


def held_tensors(node: Any) -> list[tuple[str, torch.Tensor]]:
    """Tensors in attributes of ``ctx`` and in containers there, with names such as ``ctx.x``."""
    found: list[tuple[str, torch.Tensor]] = []
    for name, value in vars(node).items():
        if not name.startswith("_pt_"):
            with suppress(Exception):  # objects of the user's may refuse to be looked into
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
    """What the node keeps for backward: saved tensors, and tensors held on ``ctx``."""
    try:
        saved = [
            (f"saved_tensors[{index}]", tensor)
            for index, tensor in enumerate(node.saved_tensors)
            if isinstance(tensor, torch.Tensor)
        ]
    except RuntimeError:  # written to since, which PyTorch itself refuses
        saved = []
    return saved + held_tensors(node)


def memory_of(tensor: torch.Tensor) -> int | None:
    """Where the storage of ``tensor`` begins; None where it has none of its own to be told by."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.device.type == "meta":
        return None
    try:
        pointer = tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # subclasses without storage
        return None
    return pointer or None


def whose(
    tensor: torch.Tensor, handed: Sequence[Handed], outputs: Sequence[tuple[str, torch.Tensor]]
) -> tuple[str, str]:
    """What ``tensor`` shares memory with: ("output" | "input" | "argument", its name), or
    ("intermediate", "")."""
    where = memory_of(tensor)
    if where is not None:
        for item in handed:
            if memory_of(item.tensor) == where:
                return ("argument" if item.position is None else "input"), item.name
        for name, output in outputs:
            if memory_of(output) == where:
                return "output", name
    return "intermediate", ""
