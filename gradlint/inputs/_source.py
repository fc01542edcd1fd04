"""Syntax trees of the functions behind an op."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from gradlint.targets.nodes import source_text
from gradlint.targets.source_file import literal, read_source


def plain_function(thing: Any) -> Callable[..., Any] | None:
    """The Python function under static and class methods, partials and decorators, if any."""
    for _ in range(10):
        if isinstance(thing, (staticmethod, classmethod)):
            thing = thing.__func__
        elif isinstance(thing, functools.partial):
            thing = thing.func
        elif inspect.ismethod(thing):
            thing = thing.__func__
        elif hasattr(thing, "__wrapped__"):
            thing = thing.__wrapped__
        else:
            break
    return thing if inspect.isfunction(thing) else None


@lru_cache(maxsize=512)
def syntax(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The definition of ``function``; None when its source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(source_text(function)))
    except Exception:
        # Truncated, generated or encoded source gives no evidence, but must not fail either.
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node  # type: ignore[return-value]
    return None


def file_syntax(filename: str) -> ast.Module | None:
    """The tree of a whole file."""
    source = read_source(filename)
    return source.tree if source is not None else None


def statements_at(filename: str, line: int, column: int = 0) -> list[ast.stmt]:
    """Statements that cover ``line`` (and ``column``, where several share a line), outermost
    first."""
    tree = file_syntax(filename)
    found: list[ast.stmt] = []
    node: ast.AST | None = tree
    while node is not None:
        inner: ast.stmt | None = None
        for child in _statements(node):
            covers = child.lineno <= line <= (child.end_lineno or child.lineno)
            if covers and (inner is None or child.col_offset <= column):
                inner = child
        if inner is not None:
            found.append(inner)
        node = inner
    return found


def _statements(node: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.stmt)]
    for handler in getattr(node, "handlers", None) or ():
        found += handler.body
    for case in getattr(node, "cases", None) or ():
        found += case.body
    return found


def first_argument(function: Callable[..., Any]) -> str:
    """The name of the first argument of a method that its class does not take: ``ctx``."""
    tree = syntax(function)
    arguments = [argument.arg for argument in tree.args.args] if tree else []
    if arguments and arguments[0] in ("cls", "self") and len(arguments) > 1:
        return arguments[1]
    return arguments[0] if arguments else ""


def resolve(node: ast.expr, names: dict[str, Any]) -> Any:
    """The object that a dotted name stands for, looked up in modules and classes only."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, names)
        if inspect.ismodule(owner) or inspect.isclass(owner):
            try:
                return getattr(owner, node.attr, None)
            except Exception:
                return None
    return None


def custom_operator(thing: Any) -> Any:
    """What ``torch.library.custom_op`` made, where ``thing`` is that, or the operator as
    ``torch.ops.mylib.name``; None for anything else."""
    known = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {})
    if type(thing).__name__ == "CustomOpDef":
        return thing
    schema = getattr(thing, "_schema", None)
    return known.get(getattr(schema, "name", None) or getattr(thing, "_qualified_op_name", ""))


def ordered(values: Iterable[Any]) -> list[Any]:
    """``values`` as a list; sets, whose order differs from run to run, by their text."""
    return sorted(values, key=repr) if isinstance(values, (set, frozenset)) else list(values)


def is_along_one_axis(arguments: Sequence[ast.expr]) -> bool:
    """Whether the arguments of ``view`` or ``reshape`` lay a tensor along one axis among axes of
    size 1: ``(1, -1, 1, 1)``, ``(1, -1, *[1] * k)``. (-1 alone flattens tensors of any shape.)"""
    sizes = [literal(part)[1] for item in arguments for part in _parts_of_shape(item)]
    return len(sizes) > 1 and sizes.count(-1) == 1 and sizes.count(1) == len(sizes) - 1


def _parts_of_shape(node: ast.expr) -> Iterator[ast.expr]:
    """The sizes in an expression for a shape; one for a list that is repeated."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _parts_of_shape(item)
    elif isinstance(node, ast.Starred):
        yield from _parts_of_shape(node.value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts_of_shape(node.left)
        yield from _parts_of_shape(node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        repeated = [side for side in sides if isinstance(side, (ast.Tuple, ast.List))]
        yield from _parts_of_shape(repeated[0]) if repeated else iter((node,))
    else:
        yield node
