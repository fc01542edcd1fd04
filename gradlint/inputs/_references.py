"""Which parameter an expression in the body of an op stands for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import literal, syntax

#: Methods whose result has the rank and the kind of the tensor they are called on.
_PRESERVING = frozenset(
    {"contiguous", "detach", "clone", "float", "double", "half", "cpu", "cuda", "to", "type_as"}
    | {"type", "data", "requires_grad_", "detach_", "abs", "neg", "exp", "square", "sigmoid"}
    | {"tanh", "relu", "clamp"}
)


class References(ast.NodeVisitor):
    """Reads one function body.

    Args:
        names: name in this body → parameter it stands for.
        function: the function read, for its globals.
        owner: the ``torch.autograd.Function`` class, to follow ``cls.helper(…)``.
        ctx: name of the context argument in this body, empty if none.
        attributes: attribute of ctx → parameter stored there; shared between forward and backward.
        saved: parameters in the order of ``save_for_backward``; shared likewise.
    """

    def __init__(
        self,
        names: dict[str, Evidence],
        function: Callable[..., Any],
        *,
        owner: type | None = None,
        ctx: str = "",
        attributes: dict[str, Evidence] | None = None,
        saved: list[Evidence | None] | None = None,
        inputs: tuple[str, list[Evidence]] | None = None,
        depth: int = 0,
    ) -> None:
        self.names = names
        self.function = function
        self.globals = getattr(function, "__globals__", {})
        self.owner = owner
        self.ctx = ctx
        self.attributes = {} if attributes is None else attributes
        self.saved = [] if saved is None else saved
        self.inputs = inputs
        self.depth = depth
        self.nested = 0

    def read(self) -> None:
        """Visit the function's body."""
        tree = syntax(self.function)
        for statement in tree.body if tree else ():
            self.visit(statement)

    def parameter(self, node: ast.AST | None) -> Evidence | None:
        """The parameter that ``node`` is, up to copies and casts."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == self.ctx:
                return self.attributes.get(node.attr)
            return self.parameter(node.value) if node.attr == "data" else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _PRESERVING:
                return self.parameter(node.func.value)
            return None
        if isinstance(node, ast.Subscript) and self.inputs and isinstance(node.value, ast.Name):
            known, position = literal(node.slice)
            if node.value.id == self.inputs[0] and known and isinstance(position, int):
                found = self.inputs[1]
                return found[position] if -len(found) <= position < len(found) else None
        return None

    def _shape_of(self, node: ast.AST) -> Evidence | None:
        """The parameter whose shape ``node`` is."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return self.parameter(node.value)
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr == "size" and not node.args:
                return self.parameter(called.value)
            if isinstance(called, ast.Name) and called.id in ("list", "tuple") and node.args:
                return self._shape_of(node.args[0])
        return None

    def _rank_of(self, node: ast.AST) -> Evidence | None:
        """The parameter whose number of axes ``node`` is."""
        if isinstance(node, ast.Attribute) and node.attr == "ndim":
            return self.parameter(node.value)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("dim", "ndimension"):
                return self.parameter(node.func.value)
            if isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
                return self._shape_of(node.args[0])
        return None
