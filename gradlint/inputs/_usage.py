"""Evidence from how forward and backward use their parameters."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from typing import Any

from gradlint.inputs import _schemas
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import literal, plain_function, resolve, syntax

#: Methods whose result has the rank and the kind of the tensor they are called on.
_PRESERVING = frozenset(
    "contiguous detach clone float double half cpu cuda to type_as type data requires_grad_ "
    "detach_ abs neg exp square sigmoid tanh relu clamp".split()
)
_SEQUENCE_METHODS = frozenset("append extend insert".split())
_DICT_METHODS = frozenset("items keys get update setdefault".split())
_STRING_METHODS = frozenset("lower upper startswith endswith strip split format".split())
#: How deep calls into the user's own helpers are followed.
_DEPTH = 3


class Reader(ast.NodeVisitor):
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

    # -- which parameter an expression stands for ---------------------------------------------

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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "size" and not node.args:
                return self.parameter(node.func.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("list", "tuple"):
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

    # -- statements ---------------------------------------------------------------------------

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
            shaped.say("tensor", 2.0)
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
        ranked.say("tensor", 2.0)
        wanted = [value] if isinstance(value, int) else value
        equal = isinstance(test.ops[0], (ast.Eq, ast.In))
        different = isinstance(test.ops[0], (ast.NotEq, ast.NotIn))
        if not isinstance(wanted, (list, tuple, set)) or not (equal or different):
            return
        for rank in wanted:
            if isinstance(rank, int) and 0 <= rank <= 6 and (equal if holds else different):
                ranked.rank(rank, 5.0 if sure else 0.8)

    def _isinstance(self, call: ast.Call, weight: float) -> None:
        found = self.parameter(call.args[0]) if len(call.args) == 2 else None
        if found is None:
            return
        text = ast.unparse(call.args[1])
        for word, kind in (
            ("Tensor", "tensor"),
            ("Parameter", "tensor"),
            ("int", "int"),
            ("float", "float"),
            ("bool", "bool"),
            ("str", "str"),
            ("tuple", "shape"),
            ("list", "shape"),
            ("dict", "dict"),
            ("Module", "module"),
            ("Callable", "callable"),
        ):
            if word in text:
                found.say(kind, weight)

    # -- expressions --------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self.parameter(node.value)
        if found is not None:
            self._attribute(found, node.attr)
        self.generic_visit(node)

    def _attribute(self, found: Evidence, name: str) -> None:
        import torch

        if name in ("T", "mT", "H", "mH", "t"):
            found.at_least(2)
            found.rank(2, 1.0)
        if name in ("imag", "angle", "conj"):
            found.say("complex", 1.5 if name == "imag" else 0.5)
        if name in _SEQUENCE_METHODS:
            found.say("tensors", 3.0)
        elif name in _DICT_METHODS:
            found.say("dict", 4.0)
        elif name in _STRING_METHODS:
            found.say("str", 4.0)
        elif hasattr(torch.Tensor, name):
            found.say("tensor", 2.5)
            found.say("index", 0.8)
            found.say("mask", 0.4)
        elif not name.startswith("__"):
            found.say("value", 3.0)
            found.say("module", 2.0)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        owner = self.parameter(node.value)
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shaped = self._shape_of(node.value)
        known, constant = literal(node.slice)
        if shaped is not None and known and isinstance(constant, int):
            shaped.say("tensor", 2.0)
            shaped.at_least(constant + 1 if constant >= 0 else -constant)
        if owner is not None:
            if known and isinstance(constant, str):
                owner.say("dict", 3.0)
            counted = [item for item in index if not self._adds_no_axis(item)]
            if len(index) > 1:
                owner.say("tensor", 2.0)
                owner.at_least(len(counted))
            else:
                owner.say("tensor", 0.7)
                owner.say("tensors", 0.5)
                owner.say("shape", 0.5)
        for item in index:
            if isinstance(item, ast.Slice):
                for bound in (item.lower, item.upper, item.step):
                    found = self.parameter(bound)
                    if found is not None:
                        found.say("int", 2.5)
            else:
                found = self.parameter(item)
                if found is not None:
                    self._index(found, node.value)
        self.generic_visit(node)

    def _index(self, found: Evidence, owner: ast.expr) -> None:
        table = resolve(owner, self.globals)
        if isinstance(table, dict) and table:
            for key in list(table)[:4]:
                found.suggest(key)
            found.say("str" if isinstance(next(iter(table)), str) else "value", 4.0)
        elif self._shape_of(owner) is not None:
            found.say("int", 3.0)
        else:
            found.say("int", 1.2)
            found.say("index", 1.6)
            found.say("mask", 0.8)

    @staticmethod
    def _adds_no_axis(item: ast.expr) -> bool:
        return isinstance(item, ast.Constant) and (item.value is None or item.value is Ellipsis)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            for one, other in ((left, right), (right, left)):
                found = self.parameter(one)
                if found is not None:
                    self._compared(found, operator, other)
        self.generic_visit(node)

    def _compared(self, found: Evidence, operator: ast.cmpop, other: ast.expr) -> None:
        known, value = literal(other)
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
            found.say("str", 3.0)
            found.suggest(value)
        elif isinstance(value, (list, tuple, set)) and isinstance(operator, (ast.In, ast.NotIn)):
            for item in value:
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

    def visit_BinOp(self, node: ast.BinOp) -> None:
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

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        found = self.parameter(node.operand)
        if found is not None:
            if isinstance(node.op, ast.Not):
                found.say("bool", 1.5)
            elif isinstance(node.op, ast.Invert):
                found.say("mask", 2.0)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        found = self.parameter(node.func)
        if found is not None:
            found.say("callable", 4.0)
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
        for key, argument in _arguments(node):
            passed = self.parameter(argument)
            if passed is not None:
                self._passed(passed, node, key)
            elif isinstance(argument, ast.Starred):
                starred = self.parameter(argument.value)
                if starred is not None:
                    starred.say("tensors", 2.0)
                    starred.say("shape", 1.0)
        for keyword in node.keywords:
            if keyword.arg is None:
                spread = self.parameter(keyword.value)
                if spread is not None:
                    spread.say("dict", 6.0)
        self._follow(node)
        self.generic_visit(node)

    def _method(self, node: ast.Call, method: ast.Attribute) -> None:
        name = method.attr
        if isinstance(method.value, ast.Name) and method.value.id == self.ctx:
            found = [self.parameter(argument) for argument in node.args]
            if name == "save_for_backward":
                self.saved[:] = found
            if name in ("save_for_backward", "mark_dirty", "mark_non_differentiable"):
                for item in found:
                    if item is not None:
                        item.say("tensor", 3.0 if name != "mark_dirty" else 5.0)
                        item.say("index", 1.0)
                        item.say("mask", 0.7)
            return
        owner = self.parameter(method.value)
        if owner is None:
            return
        numbers = [value for known, value in map(literal, node.args) if known]
        axes = [value for value in numbers if isinstance(value, int)]
        if name == "permute" and len(axes) == len(node.args) > 1:
            owner.rank(len(axes), 6.0)
        elif name in ("size", "transpose", "sum", "mean", "unsqueeze", "squeeze", "stride"):
            for axis in axes:
                extra = 0 if name == "unsqueeze" else 1
                owner.at_least(axis + extra if axis >= 0 else -axis - 1 + extra)
        elif name == "size" and axes:
            owner.at_least(axes[0] + 1)

    def _passed(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        """The parameter is an argument of ``call``."""
        if key in ("dtype", "device", "generator"):
            found.say("none" if key == "generator" else str(key), 4.0)
            return
        if isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id):
            self._builtin(found, call, key)
            return
        target = resolve(call.func, self.globals)
        module = getattr(target, "__module__", None) or ""
        name = getattr(target, "__name__", "")
        if module == "math":
            found.say("float", 2.0)
        elif module.startswith("numpy") or type(target).__module__.startswith("numpy"):
            found.say("tensor", 1.0)
        elif target is not None and (module.startswith("torch") or _is_torch_builtin(target)):
            for kind, weight in _schemas.argument_kinds(name, key, False):
                found.say(kind, weight)
        elif isinstance(call.func, ast.Attribute) and target is None:
            for kind, weight in _schemas.argument_kinds(call.func.attr, key, True):
                found.say(kind, 0.8 * weight)

    def _builtin(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "range":
            found.say("int", 4.0)
        elif name == "len":
            for kind in ("tensors", "shape"):
                found.say(kind, 1.0)
        elif name in ("enumerate", "zip", "list", "tuple", "sum"):
            found.say("tensors", 1.0)
        elif name == "float":
            found.say("float", 1.0)
        elif name in ("int", "round"):
            found.say("int", 1.0)
            found.say("float", 0.5)
        elif name == "callable":
            found.say("callable", 1.0)
        elif name == "isinstance" and key == 0:
            self._isinstance(call, 0.8)

    # -- calls into the user's own code -------------------------------------------------------

    def _follow(self, call: ast.Call) -> None:
        if self.depth >= _DEPTH:
            return
        target = self._callee(call.func)
        function = plain_function(target)
        if function is None or function is self.function or self._is_library(function):
            return
        tree = syntax(function)
        if tree is None:
            return
        parameters = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
        if inspect.ismethod(target) and parameters:
            parameters = parameters[1:]
        names: dict[str, Evidence] = {}
        ctx = ""
        for key, argument in _arguments(call):
            name = key if isinstance(key, str) else parameters[key] if key < len(parameters) else ""
            found = self.parameter(argument)
            if name and found is not None:
                names[name] = found
            elif name and isinstance(argument, ast.Name) and argument.id == self.ctx:
                ctx = name
        if names:
            Reader(
                names,
                function,
                owner=self.owner,
                ctx=ctx,
                attributes=self.attributes,
                saved=self.saved,
                depth=self.depth + 1,
            ).read()

    def _is_library(self, function: Callable[..., Any]) -> bool:
        module = function.__module__ or ""
        known = ("torch", "numpy", "math", "functools", "typing", "inspect")
        return module != self.function.__module__ and module.split(".")[0] in known

    def _callee(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute) and self.owner is not None:
            value = node.value
            if isinstance(value, ast.Name) and value.id in ("cls", "self"):
                return getattr(self.owner, node.attr, None)
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                if value.func.id == "super":
                    return self._inherited(node.attr)
        target = resolve(node, self.globals)
        if target is None and isinstance(node, ast.Name):
            return _closure(self.function).get(node.id)
        # `Other.apply(x)` reads as the forward of `Other`.
        owner = getattr(target, "__self__", None)
        if getattr(target, "__name__", "") == "apply" and isinstance(owner, type):
            return None
        return target

    def _inherited(self, name: str) -> Any:
        seen = False
        for cls in self.owner.__mro__ if self.owner else ():
            own = cls.__dict__.get(name)
            if own is None:
                continue
            if seen:
                return getattr(super(_child(self.owner, cls), self.owner), name, None)
            seen = plain_function(own) is self.function
        return None


def _child(owner: type | None, parent: type) -> Any:
    """The class just before ``parent`` in ``owner``'s order of resolution."""
    order = owner.__mro__ if owner else ()
    return order[max(order.index(parent) - 1, 0)]


def _arguments(call: ast.Call) -> list[tuple[int | str, ast.expr]]:
    found: list[tuple[int | str, ast.expr]] = list(enumerate(call.args))
    return found + [(item.arg, item.value) for item in call.keywords if item.arg]


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except Exception:
        return {}


def _is_torch_builtin(target: Any) -> bool:
    import torch

    name = getattr(target, "__name__", "")
    return bool(name) and getattr(torch, name, None) is target
