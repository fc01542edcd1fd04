"""Where in the source a tensor is written to, or kept on ``ctx``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from gradlint.experiments.gradient_place import Place
from gradlint.model.report import Excerpt
from gradlint.targets import source
from gradlint.targets.nodes import LIBRARY_FUNCTIONS, method_node
from gradlint.targets.source_file import SourceFile

#: Lines of source shown before the place.
CONTEXT = 2


def write_place(function: Any, method: str, name: str | None, label: str) -> Place | None:
    """The first statement of a method that writes in place (``x.mul_(2)``, ``x += 1``,
    ``x[0] = 0``, ``out=x``) to ``name``, else to a parameter, else to anything; where there is
    none, the method's definition.

    Args:
        function: a ``torch.autograd.Function`` class.
        method: "forward" or "backward".
        name: a variable, where known.
        label: what the excerpt says behind the underlined statement.
    """

    def rank(node: ast.AST, parameters: set[str]) -> int | None:
        written = _written_by(node)
        if not written:
            return None
        return 0 if name in written else 1 if parameters.intersection(written) else 2

    return _first(function, (method,), rank, label)


def attribute_place(
    function: Any,
    attribute: str,
    label: str,
    methods: Sequence[str] = ("setup_context", "forward"),
) -> Place | None:
    """The assignment of ``ctx.attribute`` in forward or ``setup_context``.

    Args:
        attribute: such as ``ctx.x`` or ``ctx.cache['x'][0]``.
        methods: those looked at instead, of a module that assigns ``self.attribute``.
    """
    name = attribute.partition(".")[2].partition("[")[0]

    def rank(node: ast.AST, parameters: set[str]) -> int | None:
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = (part for target in targets for part in ast.walk(target))
        kept = any(isinstance(part, ast.Attribute) and part.attr == name for part in parts)
        return 0 if kept else None

    return _first(function, methods, rank, label)


def _first(
    function: Any,
    methods: Sequence[str],
    rank: Callable[[ast.AST, set[str]], int | None],
    label: str,
) -> Place | None:
    """The place of least ``rank(node, the method's parameters)``, the first of several."""
    if not isinstance(function, type):
        return None
    of_torch = function.__module__.partition(".")[0] == "torch"
    if of_torch and function.__module__ == LIBRARY_FUNCTIONS:
        # torch writes a Function around a registered operator: its backward is the user's.
        methods = [method for method in methods if method == "backward"]
    if not methods or (of_torch and function.__module__ != LIBRARY_FUNCTIONS):
        return None
    for method in methods:
        names = ("backward", "vjp") if method == "backward" else (method,)
        try:
            held = method_node(function, *names)
        except Exception:  # sources can be anything
            continue
        if held is None:
            continue
        parameters = {argument.arg for argument in held[1].args.args}
        found = [
            (order, node.lineno, node.col_offset, node)  # type: ignore[attr-defined]
            for node in ast.walk(held[1])
            if (order := rank(node, parameters)) is not None
        ]
        if found:
            return _shown(held[0], held[1], min(found, key=lambda item: item[:3])[3], label)
    place = source.method(function, methods[0])
    return place if place[0] is not None else None


def _shown(source: SourceFile, method: ast.AST, node: ast.AST, label: str) -> Place:
    location = source.span(node)
    first = max(getattr(method, "lineno", location.line), location.line - CONTEXT)
    lines = tuple((number, source.line(number)) for number in range(first, location.line + 1))
    return location, Excerpt(lines, label), []


def _written_by(node: ast.AST) -> list[str]:
    """Variables that ``node`` itself writes to in place."""
    written: list[ast.expr] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method.endswith("_") and not method.endswith("__"):
            written.append(node.func.value)
    if isinstance(node, ast.Call):
        written += [keyword.value for keyword in node.keywords if keyword.arg == "out"]
    elif isinstance(node, ast.AugAssign):
        written.append(node.target)
    elif isinstance(node, ast.Assign):
        written += [target for target in node.targets if isinstance(target, ast.Subscript)]
    return [name for name in map(_root, written) if name]


def _root(expression: ast.expr) -> str:
    """The variable under attributes, subscripts and method calls: ``x`` of ``x.view(-1)[0]``."""
    while True:
        if isinstance(expression, (ast.Attribute, ast.Subscript)):
            expression = expression.value
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            expression = expression.func.value
        else:
            return expression.id if isinstance(expression, ast.Name) else ""
