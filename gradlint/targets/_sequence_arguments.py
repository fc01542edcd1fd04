"""Arguments of a constructor that are sequences of sizes, as the constructor reads them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gradlint.targets.nodes import class_node

#: Elements of a sequence that is only iterated over.
USUAL_LENGTH = 2


def sequence_lengths(cls: type, parameters: Collection[str]) -> dict[str, int]:
    """Constructor's parameter → the elements that ``__init__`` reads of it: by integer subscripts,
    by unpacking, or one after the other. Parameters of which no element is read are missing."""
    found = class_node(cls)
    functions = found[1].body if found is not None else []
    lengths: dict[str, int] = {}
    for function in functions:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            for name, length in _read(function):
                if name in parameters:
                    lengths[name] = max(lengths.get(name, 0), length)
    return lengths


def _read(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    tested = {
        id(node)
        for test in ast.walk(function)
        if isinstance(test, ast.Call) and ast.unparse(test.func) in ("isinstance", "hasattr")
        for node in ast.walk(test)
    }
    # What may be an integer as well is given one.
    named = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    either = {node.id for node in named if id(node) in tested}
    for node in ast.walk(function):
        for name, length in _of_node(node):
            if name not in either:
                yield name, length


def _of_node(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that ``node`` reads elements of, each with how many it has at least."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        place = _integer(node.slice)
        if place is not None:
            yield node.value.id, place + 1 if place >= 0 else max(-place, USUAL_LENGTH)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _unpacked(node.targets[0], node.value)
    elif isinstance(node, ast.Starred) and isinstance(node.value, ast.Name):
        yield node.value.id, USUAL_LENGTH
    elif isinstance(node, (ast.For, ast.comprehension)):
        for source in _iterated(node.iter):
            yield source, USUAL_LENGTH
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        yield from ((item.id, USUAL_LENGTH) for item in node.args if isinstance(item, ast.Name))


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, int]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        return
    if isinstance(value, ast.Name):
        yield value.id, len(target.elts)
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for inner, item in zip(target.elts, value.elts, strict=True):
            yield from _unpacked(inner, item)


def _iterated(node: ast.expr) -> Iterator[str]:
    """Names that a loop goes over, alone or beside others."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("enumerate", "zip", "reversed"):
        for item in node.args:
            yield from _iterated(item)


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None
