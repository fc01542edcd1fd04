"""Evidence from how forward and backward use their parameters."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import torch

from gradlint.inputs._call_usage import ALONG_ONE_AXIS, Calls
from gradlint.inputs._corners import is_whole, note_difference
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import ordered, resolve
from gradlint.targets.source_file import literal

_SEQUENCE_METHODS = frozenset({"append", "extend", "insert"})
_DICT_METHODS = frozenset({"items", "keys", "get", "update", "setdefault", "values"})
_STRING_METHODS = frozenset({"lower", "upper", "startswith", "endswith", "strip"})

_MAKE_TENSORS = frozenset({"zeros", "ones", "full", "eye"})
_RETURN_TENSORS = frozenset({"mean", "sum", "median", "amax", "amin", "std", "var", "norm"})

#: How integers that stand for nothing are told from indices: ``i < 0``, ``i != -1``.
_BELOW_ZERO = (
    *((asked, (True, 0)) for asked in (ast.Lt, ast.GtE)),
    *((asked, (True, -1)) for asked in (ast.Eq, ast.NotEq, ast.Gt, ast.LtE)),
)

#: Methods that nobody calls on indices.
_OF_NUMBERS = frozenset({"sigmoid", "tanh", "softmax", "log_softmax", "logsumexp", "relu"})

#: How code writes numbers that are infinite.
_INFINITE = {
    **dict.fromkeys(("float('inf')", "math.inf", "torch.inf"), math.inf),
    **dict.fromkeys(("float('-inf')", "-float('inf')", "-math.inf", "-torch.inf"), -math.inf),
}

#: Weight of the evidence for a tensor where a tensor stands in for an argument that is None: that
#: of ``isinstance``.
IN_PLACE_OF_TENSOR = 6.0

#: Weight of a shape that is compared with the first sizes of another one.
_LEADING = 3.0

#: Methods of tensors by which a mask becomes one of floats.
_CASTS = frozenset({"to", "type_as", "type", "float", "double", "half"})

#: Likewise for a string where the argument is compared with one: more than any name says, as
#: ``op`` says that it is a function.
_COMPARED_WITH_TEXT = 4.0

#: Weight of the evidence for a vector where one of its elements is a number (heuristic: more than
#: what the other tensors suggest, less than what is unpacked or asserted).
NUMBERED = 3.0

#: Of the number of axes with which code takes components of a tensor, each time (heuristic: twice
#: outweighs a name).
OF_COMPONENTS = 0.3


class Reader(Calls):
    """Reads one function body; see :class:`~gradlint.inputs._statements.References`."""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self.parameter(node.value)
        if found is not None and node.attr not in found.fields:
            self._attribute(found, node.attr)
            if isinstance(node.ctx, ast.Load):
                found.read[node.attr] = None
        self.generic_visit(node)

    def _attribute(self, found: Evidence, name: str) -> None:
        if name in ("parameters", "named_parameters"):
            found.has_parameters = True
        if name in ("T", "mT", "H", "mH", "t"):
            found.at_least(2)
            found.rank(2, 4.0 if name == "t" else 1.0)  # t() refuses more axes
        if name in ("imag", "angle", "conj"):
            found.say("complex", 1.5 if name == "imag" else 0.5)
        called = name in found.called
        if called and name in _OF_NUMBERS:
            found.say("index", -2.0)  # whatever its name says: ``col.sigmoid()``
            found.say("int", -2.0)
        if name in _SEQUENCE_METHODS and called:
            found.say("tensors", 3.0)
        elif name in _DICT_METHODS and called:
            found.say("dict", 4.0)
        elif name in _STRING_METHODS and called:
            found.say("str", 4.0)
        elif hasattr(torch.Tensor, name):
            found.say("any", 2.5)
        elif not name.startswith("__"):
            found.say("value", 3.0)
            found.say("module", 2.0)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        owner = self.parameter(node.value)
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shaped = self._shape_of(node.value)
        known, constant = literal(node.slice)
        if shaped is not None and known and isinstance(constant, int):
            shaped.say("any", 2.0)
            shaped.at_least(constant + 1 if constant >= 0 else -constant)
        if owner is not None:
            self._indexed(owner, index, constant if known else None)
            self._stepped(owner, index)
        for item in index:
            if isinstance(item, ast.Slice):
                for bound in (item.lower, item.upper, item.step):
                    found = self.parameter(bound)
                    if found is not None:
                        found.say("int", 2.5)
                        found.sliced = True
                        found.skipped |= bound is item.lower
                    self._bounding(bound)
            else:
                self._lagging(item)
                found = self.parameter(item)
                held = self.root(item) if found is None else None
                if held is not None and self._shape_of(node.value) is None:
                    # A part of a tensor: of integers, or a mask that was given another shape.
                    held.say("index", 2.5)
                    held.indexes = True
                if found is not None:
                    self._index(found, node.value)
                    if isinstance(node.ctx, ast.Store):
                        # An integer: with a tensor the result depends on repeated elements.
                        found.say("int", 2.5)
        self.generic_visit(node)

    def _lagging(self, item: ast.expr) -> None:
        """What is taken from the variable of a loop is an integer, and not zero where an element
        is computed of that one: ``y[:, n - period]``."""
        if not (isinstance(item, ast.BinOp) and isinstance(item.op, (ast.Add, ast.Sub))):
            return
        names = [node for node in ast.walk(item) if isinstance(node, ast.Name)]
        if not self.counters & {node.id for node in names}:
            return
        for found in filter(None, map(self.parameter, names)):
            found.say("int", 5.0)
            found.lag |= isinstance(item.op, ast.Sub)

    def _bounding(self, bound: ast.expr | None) -> None:
        """Elements of a tensor that bound a slice are integers: ``y1`` in ``a[y0 : y1 + 1]``,
        ``off[i + 1]``."""
        for node in ast.walk(bound) if bound is not None else ():
            held = self.derived.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(node, ast.Subscript) and self._shape_of(node.value) is None:
                held = self.parameter(node.value)
                if held is not None and isinstance(node.slice, ast.BinOp):
                    held.adjacent = True
            if held is not None:
                held.say("index", 2.5)
                held.indexes = True

    def _indexed(self, owner: Evidence, index: list[ast.expr], constant: object) -> None:
        """``owner[index]``; ``constant`` where the whole index is one."""
        if isinstance(constant, str):
            owner.say("dict", 3.0)
            if constant not in owner.keys:
                owner.keys.append(constant)
        if len(index) > 1 and all(is_whole(item) for item in index[:-1]):
            part, position = literal(index[-1])
            if part and type(position) is int and position >= 0:
                owner.parts.add(position)
        if isinstance(index[0], ast.Constant) and index[0].value is Ellipsis:
            owner.batched = True
        if len(index) > 1:
            owner.say("any", 2.0)
            owner.at_least(sum(not self._adds_no_axis(item) for item in index))
            if _takes_components(index):
                owner.rank(len(index), OF_COMPONENTS)
            if _is_vector_between_new_axes(index):
                owner.rank(1, ALONG_ONE_AXIS)
        else:
            owner.say("any", 0.7)
            owner.say("tensors", 0.5)
            owner.say("shape", 0.5)

    def _stepped(self, owner: Evidence, index: list[ast.expr]) -> None:
        """``owner[:, t]`` in a loop over t, ``owner[s : s + chunk]``: what another tensor is
        indexed with too is a position on an axis that they share."""
        for axis, item in enumerate(index):
            if self._adds_no_axis(item):
                return
            names = {part.id for part in ast.walk(item) if isinstance(part, ast.Name)}
            stepping = isinstance(item, (ast.Slice, ast.Name))
            if stepping and names & self.counters:
                owner.stepped.setdefault(f"{self.function.__qualname__} {ast.unparse(item)}", axis)

    def _index(self, found: Evidence, owner: ast.expr) -> None:
        table = resolve(owner, self.globals)
        if isinstance(owner, ast.Dict):  # ``{"call": 1.0, "put": -1.0}[option]``
            table = {key.value: None for key in owner.keys if isinstance(key, ast.Constant)}
        if isinstance(table, dict) and table:
            for key in list(table)[:4]:
                found.suggest(key)
            found.say("str" if isinstance(next(iter(table)), str) else "value", 4.0)
            found.chosen = True
        elif self._shape_of(owner) is not None:
            found.say("int", 3.0)
        else:
            found.say("int", 1.2)
            found.say("index", 1.6)
            found.say("mask", 0.8)
            found.indexes = True

    @staticmethod
    def _adds_no_axis(item: ast.expr) -> bool:
        return isinstance(item, ast.Constant) and (item.value is None or item.value is Ellipsis)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._leading_axes(node)
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            held = self.root(left)
            if held is not None and (type(operator), literal(right)) in _BELOW_ZERO:
                held.signed = True
            for one, other in ((left, right), (right, left)):
                if isinstance(operator, (ast.Eq, ast.NotEq)) and self._is_size(one):
                    self._makes_size(other)
                found = self.parameter(one)
                if found is None:
                    continue
                if one is right and isinstance(operator, (ast.In, ast.NotIn)):
                    self._holds(found, other)
                else:
                    self._compared(found, operator, other)
        self.generic_visit(node)

    def _is_size(self, node: ast.expr) -> bool:
        """Whether ``node`` is ``x.size(0)``, ``x.shape[0]``, or several sizes, ``x.shape[1:]``."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            return node.func.attr == "size" and self.parameter(node.func.value) is not None
        whole = node.value if isinstance(node, ast.Subscript) else node
        return self._shape_of(whole) is not None

    def _holds(self, container: Evidence, item: ast.expr) -> None:
        """``item in container``."""
        known, value = literal(item)
        if known and isinstance(value, str):
            container.say("dict", 3.0)
            if value not in container.keys:
                container.keys.append(value)

    def _compared(self, found: Evidence, operator: ast.cmpop, other: ast.expr) -> None:
        known, value = literal(other)
        if not known and ast.unparse(other).lower() in _INFINITE:
            known, value = True, _INFINITE[ast.unparse(other).lower()]
        if not known:
            if not isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                found.say("float", 0.3)
                found.say("tensor", 0.5)
            return
        if value is None:
            found.optional = True
        elif isinstance(value, bool):
            found.say("bool", 3.0)
        elif isinstance(value, str):
            found.say("str", _COMPARED_WITH_TEXT)
            found.suggest(value)
        elif isinstance(value, (list, tuple, set)) and isinstance(operator, (ast.In, ast.NotIn)):
            for item in ordered(value):
                found.suggest(item)
            kind = {str: "str", int: "int", float: "float"}.get(type(next(iter(value), None)), "")
            if kind:
                found.say(kind, 3.0)
        elif isinstance(value, (int, float)):
            equal = isinstance(operator, (ast.Eq, ast.NotEq))
            found.say("int" if isinstance(value, int) else "float", 1.5 if equal else 0.6)
            found.say("float", 0.6)
            found.say("tensor", 0.5)
            if equal and isinstance(operator, ast.Eq):
                found.suggest(value)

    def _leading_axes(self, node: ast.Compare) -> None:
        """``index.shape != x.shape[:2]``: how many axes the one has, and the other has more."""
        sides = (node.left, node.comparators[0])
        for one, other in (sides, sides[::-1]):
            match one, other:
                case (
                    ast.Attribute(whole, "shape"),
                    ast.Subscript(
                        ast.Attribute(longer, "shape"), ast.Slice(None, ast.Constant(int(k)), None)
                    ),
                ) if k > 0:
                    found, beyond = self.parameter(whole), self.parameter(longer)
                    if found is not None and beyond is not None:
                        found.rank(k, _LEADING)
                        beyond.rank(k + 1, _LEADING)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            absent = isinstance(test.ops[0], ast.Is)
            default, given = (node.body, node.orelse) if absent else (node.orelse, node.body)
            found = self.parameter(given)
            asked = found is not None and found is self.parameter(test.left)
            stands_in = asked and not _is_cast(given) and self._is_tensor(default)
            if found is not None and stands_in and found.default is None:
                found.say("tensor", IN_PLACE_OF_TENSOR)
        self._switched(test)
        super().visit_IfExp(node)

    def visit_If(self, node: ast.If) -> None:
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
            found = self.parameter(test.left)
            if found is not None and found.default is None and self._is_replaced(found, node.body):
                found.say("tensor", IN_PLACE_OF_TENSOR)
        self._switched(test)
        super().visit_If(node)

    def _switched(self, test: ast.expr) -> None:
        """``if z`` and ``if z and bias``."""
        for part in test.values if isinstance(test, ast.BoolOp) else [test]:
            if (found := self.parameter(part)) is not None:
                found.switch = True

    def _is_replaced(self, found: Evidence, body: list[ast.stmt]) -> bool:
        """Whether a tensor of numbers stands in for a parameter that is None: ``if mask is None:
        mask = x.new_ones(n)``."""
        given = [part for part in body if isinstance(part, ast.Assign)]
        values = [part.value for part in given if self.parameter(part.targets[0]) is found]
        return any(self._is_tensor(v) and "bool" not in ast.unparse(v) for v in values)

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is plainly a tensor: one that is made, a part of a parameter, or
        what a method of tensors returns."""
        if isinstance(node, ast.Subscript):
            return self.parameter(node.value) is not None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        name = node.func.attr
        if name.endswith("_like") or name.startswith("new_") or name in _MAKE_TENSORS:
            return True
        return name in _RETURN_TENSORS and self.parameter(node.func.value) is not None

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Sub):  # ``x.dim() - 2``
            self._axes_after(node.left, node.right)
            upper, lower = self.part(node.left), self.part(node.right)
            if upper is not None and lower is not None:
                note_difference(upper, lower)
        self._beside_a_sum(node)
        self._for_each(node)
        for side, other in ((node.left, node.right), (node.right, node.left)):
            found = self.parameter(side)
            if found is None:
                continue
            if isinstance(node.op, ast.MatMult):
                found.say("tensor", 4.0)
                found.at_least(1)
                found.rank(2, 1.0)
            elif isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)):
                found.say("int", 1.2)
            elif isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
                found.say("mask", 1.5)
            else:
                found.say("float", 0.7)
                found.say("tensor", 0.7)
                if isinstance(node.op, ast.Pow) and side is node.right:
                    base, _ = literal(other)
                    found.say("int" if base else "float", 0.8)
        self.generic_visit(node)

    def _beside_a_sum(self, node: ast.BinOp) -> None:
        """``w[i] * (x * y).sum()``: what stands beside a sum over all elements is a number."""
        for side, other in ((node.left, node.right), (node.right, node.left)):
            for part in _terms(side) if any(map(_is_whole_sum, _terms(other))) else ():
                if isinstance(part, ast.Subscript) and isinstance(
                    part.slice, (ast.Name, ast.BinOp)
                ):
                    owner = self.parameter(part.value)
                    if owner is not None:
                        owner.rank(1, NUMBERED)

    def _for_each(self, node: ast.BinOp) -> None:
        """``w[i] * f`` for ``i, f in enumerate(features)``: one number for each of them."""
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(side, ast.Subscript) or not isinstance(node.op, ast.Mult):
                continue
            owner = self.like(side.value)
            item, whole = self.numbered.get(ast.unparse(side.slice), ("", ""))
            if owner is not None and item and item == ast.unparse(other):
                owner.rank(1, NUMBERED)
                owner.for_each_of = whole

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        found = self.parameter(node.operand)
        if found is not None and isinstance(node.op, ast.Not):
            found.say("bool", 1.5)
            found.switch = True
        # An element of a mask is one, too: ``~done[t]``.
        found = self.root(node.operand) if isinstance(node.op, ast.Invert) else None
        if found is not None:
            found.say("mask", 2.0)
        self.generic_visit(node)


def _is_cast(node: ast.expr) -> bool:
    """Whether an expression makes floats of what may be none: ``keep.to(x.dtype)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CASTS
    )


def _takes_components(index: list[ast.expr]) -> bool:
    """Whether a subscript takes components of each row: ``[:, :2]``, ``[:, 2:]``, ``[:, 0]``."""
    *before, last = index
    if not before or not all(map(is_whole, before)):
        return False
    bounds = [last.lower, last.upper] if isinstance(last, ast.Slice) else [last]
    known = [literal(bound) for bound in bounds if bound is not None]
    return bool(known) and all(found and type(value) is int for found, value in known)


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of sums, products and powers."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        yield from _terms(node.left)
        yield from _terms(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _terms(node.operand)
    else:
        yield node


def _is_whole_sum(node: ast.expr) -> bool:
    """Whether ``node`` is a sum or mean over all elements of something."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    arguments = 1 if ast.unparse(node.func.value) == "torch" else 0
    known = node.func.attr in ("sum", "mean") and len(node.args) == arguments
    return known and not node.keywords


def _is_vector_between_new_axes(index: list[ast.expr]) -> bool:
    """``w[None, :, None]``. One new axis says nothing: ``x[:, None] - y[None]`` are rows, too."""
    added = [item for item in index if isinstance(item, ast.Constant) and item.value is None]
    return (
        len(added) > 1
        and len(index) == len(added) + 1
        and all(
            isinstance(item, ast.Slice) and is_whole(item) for item in index if item not in added
        )
    )
