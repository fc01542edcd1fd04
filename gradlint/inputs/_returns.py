"""Which inputs backward returns something for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import syntax

_MISSING_MARK = object()


def read_returns(backward: Callable[..., Any], parameters: list[Evidence]) -> None:
    """Set ``differentiable`` of each parameter from the tuples that backward returns."""
    tree = syntax(backward)
    if tree is None:
        return
    assigned = _assignments(tree)
    positions = [item for item in parameters if item.passing != "keyword"]
    given: dict[int, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            for index, element in enumerate(_elements(node.value, assigned)):
                if element is _MISSING_MARK:
                    break
                given[index] = given.get(index, False) or not _is_none(element, assigned)
    for node in ast.walk(tree):
        needed = _needs_input_grad(node)
        if needed is not None and 0 <= needed < len(positions):
            given.setdefault(needed, True)
    for index, evidence in enumerate(positions):
        if evidence.passing == "varargs" or index not in given:
            continue
        evidence.differentiable = given[index]
        if given[index]:
            evidence.say("tensor", 4.0)
        else:
            evidence.say("tensor", -1.5)
            for kind in ("int", "float", "bool", "index", "mask"):
                if kind in evidence.weights:
                    evidence.say(kind, 0.7)


def _elements(value: Any, assigned: dict[str, list[ast.expr]], depth: int = 0) -> list[Any]:
    """Elements of a returned expression; ends with a mark where they can't be told."""
    if isinstance(value, ast.Tuple):
        found: list[Any] = []
        for item in value.elts:
            if isinstance(item, ast.Starred):
                found += _elements(item.value, assigned, depth)
                if found and found[-1] is _MISSING_MARK:
                    return found
            else:
                found.append(item)
        return found
    if isinstance(value, ast.List):
        return list(value.elts)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left = _elements(value.left, assigned, depth)
        if isinstance(value.left, (ast.Tuple, ast.List, ast.BinOp)):
            return left + _elements(value.right, assigned, depth)
        return [value]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        repeated = value.left
        if isinstance(repeated, (ast.Tuple, ast.List)):
            count = value.right
            times = count.value if isinstance(count, ast.Constant) else None
            # An unknown count of one constant: enough of them for any signature.
            return list(repeated.elts) * (times if isinstance(times, int) else 24)
        return [value]
    if isinstance(value, ast.Name) and depth < 3:
        known = assigned.get(value.id, [])
        if len(known) == 1 and isinstance(known[0], (ast.Tuple, ast.List)):
            return _elements(known[0], assigned, depth + 1)
    called = value.func if isinstance(value, ast.Call) and value.args else None
    if isinstance(called, ast.Name) and called.id in ("tuple", "list"):
        return [_MISSING_MARK]
    return [value]


def _is_none(node: Any, assigned: dict[str, list[ast.expr]]) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Name):
        values = assigned.get(node.id)
        return bool(values) and all(_is_none(value, {}) for value in values or ())
    return False


def _assignments(tree: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, found)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
    return found


def _bind(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        found.setdefault(target.id, []).append(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts: list[ast.expr] = [value] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            parts = value.elts
        for item, part in zip(target.elts, parts, strict=True):
            _bind(item, part, found)


def _needs_input_grad(node: ast.AST) -> int | None:
    """The index in ``ctx.needs_input_grad[index]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    if node.value.attr != "needs_input_grad" or not isinstance(node.slice, ast.Constant):
        return None
    index = node.slice.value
    return index if isinstance(index, int) else None
