"""Matrices by which forward multiplies a state again and again: they should be contractions, or
the iteration diverges, and what it returns is no solution of the equation that backward assumes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from gradlint.inputs._source import syntax

#: Functions that multiply a state by a matrix, written as calls.
_PRODUCTS = frozenset({"matmul", "mm", "mv", "bmm", "linear", "einsum", "addmm"})


def iterated_matrices(function: Callable[..., Any]) -> list[str]:
    """Names that multiply, inside a loop, a variable which the loop computes from itself.

    ``for _ in range(99): z = torch.tanh(z @ W.T + x)`` gives ``["W"]``.
    """
    tree = syntax(function)
    found: dict[str, None] = {}
    for loop in ast.walk(tree) if tree is not None else ():
        if isinstance(loop, (ast.For, ast.While)):
            found.update(dict.fromkeys(_of_loop(loop)))
    return list(found)


def _of_loop(loop: ast.For | ast.While) -> Iterator[str]:
    states = _carried(loop)
    for node in ast.walk(loop):
        for one, other in _products(node):
            # What is indexed is another matrix in every round.
            varies = any(isinstance(part, ast.Subscript) for part in ast.walk(other))
            if _names(one) & states and not _names(other) & states and not varies:
                yield from sorted(_names(other))


def _carried(loop: ast.For | ast.While) -> set[str]:
    """Variables that a round of the loop takes over from the one before, and those made of them;
    not those that each round assigns first, such as the part of a batch that it is about."""
    read: set[str] = set()
    assigned: set[str] = set()
    carried: set[str] = set()
    sources: dict[str, set[str]] = {}
    for node in _in_order(loop.body):
        if isinstance(node, ast.Assign):
            value, targets = _names(node.value), node.targets
        elif isinstance(node, ast.AugAssign):
            value, targets = _names(node), [node.target]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append"):
            value, targets = _names(node), [node.func]
        else:
            continue
        read |= value - assigned
        for name in {name for target in targets for name in _stored(target)}:
            assigned.add(name)
            sources.setdefault(name, set()).update(value)
            if name in read:
                carried.add(name)
    carried |= read & assigned
    for _ in sources:
        carried |= {name for name, made_of in sources.items() if made_of & carried}
    return carried


def _in_order(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Assignments and calls in the order in which they stand."""
    found = [node for statement in body for node in ast.walk(statement)]
    kept = [node for node in found if isinstance(node, (ast.Assign, ast.AugAssign, ast.Call))]
    yield from sorted(kept, key=lambda node: (node.lineno, node.col_offset))


def _stored(target: ast.expr) -> set[str]:
    """The variables that an assignment to ``target`` changes: of ``z[k]``, ``z``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for part in target.elts for name in _stored(part)}
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _products(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of factors of a matrix product, in both orders."""
    pair: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        pair = [node.left, node.right]
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        pair = [item for item in node.args if not isinstance(item, ast.Constant)][:2]
        if name not in _PRODUCTS:
            pair = []
    if len(pair) == 2:
        yield pair[0], pair[1]
        yield pair[1], pair[0]


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"torch", "F"}
