"""The shape of a parameter that a module passes to an operator, from what made it."""

from __future__ import annotations

import ast
import re

from gradlint.targets.source_file import dotted

#: Functions that make a tensor of the sizes that they are given, one by one or as a tuple.
_OF_SIZES = frozenset({"empty", "ones", "rand", "randn", "zeros"})


def axes_of_parameter(expression: str) -> tuple[str, ...] | None:
    """The axes of a parameter made by ``expression``, such as
    ``nn.Parameter(torch.zeros(width, 1))``; None where that is not plain to see.

    Returns:
        One text for each axis: the expression of its size.
    """
    try:
        made = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    if not (isinstance(made, ast.Call) and made.args):
        return None
    if dotted(made.func).rpartition(".")[2] != "Parameter":
        return None
    return _axes_of_tensor(made.args[0])


def _axes_of_tensor(made: ast.expr) -> tuple[str, ...] | None:
    if isinstance(made, ast.BinOp):  # scaled by a number: the tensor is on one of the sides
        left = _axes_of_tensor(made.left)
        return left if left is not None else _axes_of_tensor(made.right)
    if not isinstance(made, ast.Call) or not made.args:
        return None
    name = dotted(made.func).rpartition(".")[2]
    if name in ("tensor", "full"):
        return _axes_of_value(made.args[0], full=name == "full")
    return _axes_of_sizes(made.args) if name in _OF_SIZES else None


def _axes_of_sizes(sizes: list[ast.expr]) -> tuple[str, ...] | None:
    """Those that are given one by one, or as a tuple."""
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    elif len(sizes) == 1 and re.search(r"(?i)shape|size", ast.unparse(sizes[0])):
        return None  # this may be a tuple of any length
    if any(isinstance(size, ast.Starred) for size in sizes):
        return None
    return tuple(map(ast.unparse, sizes))


def _axes_of_value(value: ast.expr, *, full: bool) -> tuple[str, ...] | None:
    """Those of ``torch.tensor(value)`` and ``torch.full(value, …)``."""
    if isinstance(value, (ast.Tuple, ast.List)):
        if full:
            return tuple(map(ast.unparse, value.elts))
        nested = any(isinstance(item, (ast.Tuple, ast.List, ast.Starred)) for item in value.elts)
        return None if nested else (str(len(value.elts)),)
    number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    converted = isinstance(value, ast.Call) and dotted(value.func) in ("float", "int")
    return () if (number or converted) and not full else None
