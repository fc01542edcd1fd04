"""Loops of the user's whose number of rounds is written into forward: ``for _ in range(60)``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch

from gradlint.model.op import Op
from gradlint.targets.nodes import function_node

#: Classes that have a forward.
_WITH_FORWARD = (torch.autograd.Function, torch.nn.Module)
#: Functions that are looked into, from forward on.
_MOST_FUNCTIONS = 20


def counted_loops(op: Op) -> Iterator[tuple[FunctionType, int]]:
    """The functions of the op's own file in which a loop makes a number of rounds that is written
    there, and that number: of loops that do the same in each round, as an iteration does."""
    for function in _functions(op):
        found = function_node(function)
        loops = (node for node in ast.walk(found[1]) if isinstance(node, ast.For)) if found else ()
        for count in dict.fromkeys(map(_rounds, loops)):
            if count is not None:
                yield function, count


def _rounds(loop: ast.For) -> int | None:
    """The rounds of ``for _ in range(60)``, where the body does not read the variable."""
    called = loop.iter
    if not (isinstance(called, ast.Call) and ast.unparse(called.func) == "range"):
        return None
    count = called.args[0] if len(called.args) == 1 else None
    if not (isinstance(count, ast.Constant) and type(count.value) is int):
        return None
    used = {node.id for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return None if ast.unparse(loop.target) in used else count.value


def _functions(op: Op) -> Iterator[FunctionType]:
    """Forward, and the functions and Functions of the same file that it names, and they in turn."""
    module = type(op.module) if op.module is not None else None
    waiting: list[Any] = [op.function or module or op.defining or op.call]
    seen: set[FunctionType] = set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        thing = waiting.pop(0)
        if isinstance(thing, type) and issubclass(thing, _WITH_FORWARD):
            thing = inspect.unwrap(thing.forward)
        if not isinstance(thing, FunctionType) or thing in seen:
            continue
        seen.add(thing)
        yield thing
        names = (thing.__globals__.get(name) for name in thing.__code__.co_names)
        waiting += [item for item in names if getattr(item, "__module__", "") == thing.__module__]


@contextmanager
def more_rounds(function: FunctionType, count: int, factor: int) -> Iterator[None]:
    """Loops over ``range(count)`` in the module of ``function`` make ``factor`` times as many
    rounds in the body."""
    space = function.__globals__
    own, before = "range" in space, space.get("range")

    def longer(*numbers: int) -> range:
        return range(factor * count) if numbers == (count,) else range(*numbers)

    space["range"] = longer
    try:
        yield
    finally:
        if own:
            space["range"] = before
        else:
            del space["range"]
