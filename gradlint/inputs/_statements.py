"""Evidence from statements: what is unpacked, asserted and branched on."""

from __future__ import annotations

import ast

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._references import References
from gradlint.inputs._source import literal, ordered

_CLASS_KINDS = (
    ("Tensor", "any"),
    ("Parameter", "any"),
    ("int", "int"),
    ("float", "float"),
    ("bool", "bool"),
    ("str", "str"),
    ("tuple", "shape"),
    ("list", "shape"),
    ("dict", "dict"),
    ("Module", "module"),
    ("Callable", "callable"),
)


class Statements(References):
    """Reads assignments, conditions and loops."""

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
            return
        found = self.parameter(value)
        if isinstance(target, ast.Name):
            if found is not None:
                self.names[target.id] = found
            elif target.id in self.names and not self.nested:
                del self.names[target.id]
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == self.ctx and found is not None:
                self.attributes[target.attr] = found
                for kind in ("float", "int", "bool"):
                    found.say(kind, 0.4)
        elif isinstance(target, ast.Subscript):
            self.visit(target)

    def _unpack(self, targets: list[ast.expr], value: ast.expr) -> None:
        starred = any(isinstance(item, ast.Starred) for item in targets)
        shaped = self._shape_of(value)
        if shaped is not None:
            shaped.say("any", 2.0)
            if starred:
                shaped.at_least(len(targets) - 1)
            else:
                # Under a condition the rank holds in one branch only.
                shaped.rank(len(targets), 2.0 if self.nested else 6.0)
            return
        sources: list[Evidence | None] | None = None
        if isinstance(value, ast.Name) and self.inputs and value.id == self.inputs[0]:
            sources = list(self.inputs[1])
        elif isinstance(value, ast.Attribute) and value.attr == "saved_tensors":
            sources = self.saved
        elif isinstance(value, (ast.Tuple, ast.List)):
            for target, item in zip(targets, value.elts, strict=False):
                self._assign(target, item)
            return
        if sources is not None:
            for target, source in zip(targets, sources, strict=False):
                if isinstance(target, ast.Name):
                    if source is not None:
                        self.names[target.id] = source
                    else:
                        self.names.pop(target.id, None)
            return
        found = self.parameter(value)
        if found is not None and not starred:
            found.say("tensors", 2.0)
            found.say("shape", 1.5)
            found.length = len(targets)
        for target in targets:
            if isinstance(target, ast.Name) and not self.nested:
                self.names.pop(target.id, None)

    def visit_If(self, node: ast.If) -> None:
        strict = len(node.body) == 1 and isinstance(node.body[0], ast.Raise)
        self._condition(node.test, holds=not strict, sure=strict)
        self.visit(node.test)
        self.nested += 1
        for statement in (*node.body, *node.orelse):
            self.visit(statement)
        self.nested -= 1

    def visit_Assert(self, node: ast.Assert) -> None:
        self._condition(node.test, holds=True, sure=True)
        self.visit(node.test)

    def visit_For(self, node: ast.For) -> None:
        found = self.parameter(node.iter)
        if found is not None:
            found.say("tensors", 2.0)
            found.say("shape", 0.6)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test, holds=True, sure=False)
        self.generic_visit(node)

    def _condition(self, test: ast.expr, *, holds: bool, sure: bool) -> None:
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                self._condition(value, holds=holds, sure=sure and isinstance(test.op, ast.And))
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._condition(test.operand, holds=not holds, sure=sure)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            self._rank_condition(test, holds, sure)
        elif isinstance(test, ast.Call):
            if isinstance(test.func, ast.Name) and test.func.id == "isinstance" and sure:
                self._isinstance(test, 6.0 if holds else -3.0)
        else:
            found = self.parameter(test)
            if found is not None:
                found.say("bool", 2.0)
                found.optional = found.optional or found.default is None

    def _rank_condition(self, test: ast.Compare, holds: bool, sure: bool) -> None:
        ranked = self._rank_of(test.left)
        known, value = literal(test.comparators[0])
        if ranked is None or not known:
            return
        ranked.say("any", 2.0)
        wanted = [value] if isinstance(value, int) else value
        equal = isinstance(test.ops[0], (ast.Eq, ast.In))
        different = isinstance(test.ops[0], (ast.NotEq, ast.NotIn))
        if not isinstance(wanted, (list, tuple, set)) or not (equal or different):
            return
        for rank in ordered(wanted):
            if isinstance(rank, int) and 0 <= rank <= 6 and (equal if holds else different):
                ranked.rank(rank, 5.0 if sure else 0.8)

    def _isinstance(self, call: ast.Call, weight: float) -> None:
        found = self.parameter(call.args[0]) if len(call.args) == 2 else None
        if found is None:
            return
        text = ast.unparse(call.args[1])
        for word, kind in _CLASS_KINDS:
            if word in text:
                found.say(kind, weight)
