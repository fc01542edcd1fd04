"""Sizes as arithmetic of dims, and which combinations of dims and choices become samples."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradlint.expressions.compile import Expression, compile_expression
from gradlint.expressions.limits import ExpressionError

#: The most samples that one spec makes by sweeping (heuristic: these are checked quickly).
MAX_SAMPLES = 12

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_CALLS: dict[str, Callable[..., int]] = {"max": max, "min": min, "abs": abs}


def size_of(size: int | str, dims: Mapping[str, int]) -> int:
    """The size that ``size``, a number or arithmetic of ``dims``, stands for.

    Raises:
        ExpressionError: it is not arithmetic of known dims, or has no value.
    """
    if isinstance(size, int):
        return size
    expression = _compiled(size, frozenset(dims))

    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in dims:
            return dims[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            operand = value(node.operand)
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Pow) and not (abs(left) < 2**16 and 0 <= right < 8):
                raise _wrong(size, node, "a power that is too large for a size")
            try:
                result = _OPERATORS[type(node.op)](left, right)
            except ZeroDivisionError:
                raise _wrong(size, node, "a division by zero") from None
            if abs(result) > 2**62:
                raise _wrong(size, node, "a size that is too large")
            return result
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            call = _CALLS.get(node.func.id)
            if call is not None and node.args and not node.keywords:
                return call(*_unpacked([value(part) for part in node.args], call))
        raise _wrong(size, node, "a size is made of dims, whole numbers, + - * // % and max, min")

    return value(expression.tree)


@functools.lru_cache(1024)
def _compiled(text: str, names: frozenset[str]) -> Expression:
    # Each sample asks again.
    return compile_expression(text, names)


def _unpacked(values: list[int], call: Callable[..., int]) -> Sequence[Any]:
    return values[:1] if call is abs else [values]


def _wrong(text: str, node: ast.AST, message: str) -> ExpressionError:
    return ExpressionError(message, text=text, column=getattr(node, "col_offset", 0) + 1)


@dataclass(frozen=True)
class Axis:
    """One thing that is varied: a name and its choices, the usual one first."""

    name: str
    choices: tuple[Any, ...]


def combinations(axes: Sequence[Axis], limit: int = MAX_SAMPLES) -> list[tuple[int, ...]]:
    """Which choice of every axis each sample takes.

    The first choices together; then each other choice with all else first; then the last choices
    together. Where that is more than ``limit``, choices of the axes are dropped from the middle.
    """
    first = (0,) * len(axes)
    last = tuple(len(axis.choices) - 1 for axis in axes)
    wanted = [first]
    deepest = max((len(axis.choices) for axis in axes), default=1)
    # Round by round, every axis gets its last choice before any gets its next to last.
    for depth in range(1, deepest):
        for position, axis in enumerate(axes):
            if depth < len(axis.choices):
                choice = len(axis.choices) - depth
                wanted.append((*first[:position], choice, *first[position + 1 :]))
    kept = list(dict.fromkeys(wanted))[: limit - 1 if last not in wanted else limit]
    ordered = sorted(kept, key=lambda combination: _order(combination))
    return list(dict.fromkeys([*ordered, last]))


def _order(combination: tuple[int, ...]) -> tuple[int, int]:
    for position, choice in enumerate(combination):
        if choice:
            return (position + 1, choice)
    return (0, 0)
