"""Sizes that are known from the text alone, so that too large ones are refused before any run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from gradlint.expressions import vocabulary as words
from gradlint.expressions.limits import (
    check_bits,
    check_elements,
    check_power,
    check_repeat,
    check_size,
)

_FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
#: Functions and methods whose arguments are the sizes of what they make, or factors of it.
_SIZED = frozenset(["zeros", "ones", "rand", "randn", "eye", "full"])
_SIZED_METHODS = frozenset(["expand", "new_ones", "new_zeros", "repeat", "tile"])
_LAST = {"arange": 1, "linspace": 3, "logspace": 3, "randperm": 1}


class Folder:
    """Evaluates the integers of one expression that do not depend on names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.known: dict[int, Any] = {}

    def number(self, node: ast.AST) -> Any:
        """The integer or string that ``node`` stands for, or None."""
        if id(node) not in self.known:
            self.known[id(node)] = self._number(node)
        return self.known[id(node)]

    def _number(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.number(node.operand)
            return -value if isinstance(value, int) else None
        if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
            left, right = self.number(node.left), self.number(node.right)
            if not isinstance(left, int) or not isinstance(right, int):
                return None
            if isinstance(node.op, ast.Pow):
                check_power(left, right)
            if isinstance(node.op, ast.LShift):
                check_bits(left.bit_length() + right)
            try:
                value = _FOLDED[type(node.op)](left, right)
            except (ArithmeticError, ValueError):
                return None
            if isinstance(value, int):
                check_bits(value.bit_length())
                return value
        return None

    def check(self, node: ast.expr) -> None:
        """Refuse ``node``, an operation or call, where its size is known and too large."""
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult):
                self._repeated(node.left, node.right)
                self._repeated(node.right, node.left)
            self.number(node)
        elif isinstance(node, ast.Call):
            self._call(node)

    def _repeated(self, sequence: ast.expr, times: ast.expr) -> None:
        count, repeats = self._count(sequence), self.number(times)
        if count and isinstance(repeats, int):
            check_repeat([0] * count, repeats)

    def _count(self, node: ast.expr) -> int:
        """Items of a literal list, tuple or string; 0 for anything else."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return len(node.value)
        if isinstance(node, (ast.List, ast.Tuple)):
            return sum(max(self._count(part), 1) for part in node.elts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for sequence, times in ((node.left, node.right), (node.right, node.left)):
                count, repeats = self._count(sequence), self.number(times)
                if count and isinstance(repeats, int):
                    return count * max(repeats, 0)
        return 0

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        sizes = list(node.args) + [word.value for word in node.keywords if word.arg == "size"]
        is_method = isinstance(node.func, ast.Attribute) and not _is_prefix(node.func, self.names)
        if name in (_SIZED_METHODS if is_method else _SIZED) or (name == "tile" and not is_method):
            if name == "full":
                sizes = sizes[:1]
            flat: list[ast.expr] = []
            for part in sizes:
                flat += part.elts if isinstance(part, (ast.Tuple, ast.List)) else [part]
            if name == "eye" and len(flat) == 1:
                flat = flat * 2
            known = [self.number(part) for part in flat]
            check_size([value for value in known if isinstance(value, int) and value > 0])
        elif name in _LAST and not is_method and len(sizes) == _LAST[name]:
            value = self.number(sizes[-1])
            if isinstance(value, int):
                check_elements(value)


def _is_prefix(node: ast.Attribute, names: frozenset[str]) -> bool:
    return isinstance(node.value, ast.Name) and (
        node.value.id in words.PREFIXES and node.value.id not in names
    )
