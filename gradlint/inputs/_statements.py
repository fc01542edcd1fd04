"""Evidence from statements: which parameter an expression stands for, and what is unpacked,
asserted and branched on."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import Any, TypeGuard

from gradlint.inputs import _names
from gradlint.inputs._annotations import read_name
from gradlint.inputs._corners import Part, part_of
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import ordered, syntax
from gradlint.targets.source_file import literal

#: Methods whose result has the rank and the kind of the tensor they are called on.
_PRESERVING = frozenset(
    {"contiguous", "detach", "clone", "float", "double", "half", "cpu", "cuda", "to", "type_as"}
    | {"type", "data", "requires_grad_", "detach_", "abs", "neg", "exp", "square", "sigmoid"}
    | {"tanh", "relu", "clamp"}
)
#: Functions that return the number that they are given.
_CASTS = frozenset({"float", "int"})
#: Methods whose result has the elements of the tensor they are called on, in another shape, or some
#: of them replaced.
_VIEWS = frozenset(
    {"unsqueeze", "squeeze", "view", "reshape", "flatten", "expand", "expand_as", "t", "transpose"}
    | {"unbind", "clamp", "clamp_min", "clamp_max", "masked_fill", "long", "int", "view_as"}
)
#: Functions whose result has the shape of the tensor that they are given.
_NORMALISING = frozenset({"softmax", "log_softmax", "softplus", "sqrt", "log", "normalize"})
#: Those among them, and attributes, that exchange the first axis and the last.
_TRANSPOSING = frozenset({"t", "T", "mT"})
#: Class names in ``isinstance`` → the kind of argument that they mean.
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
        #: Variables of loops over ranges.
        self.counters: set[str] = set()
        #: Name → parameter whose elements it holds, or some of them, in another shape.
        self.derived: dict[str, Evidence] = {}
        #: Name → the columns of a parameter that it holds.
        self.columns: dict[str, Part] = {}
        #: Name → parameter from which it was computed element by element, or normalised.
        self.alike: dict[str, Evidence] = {}
        #: Counter of a loop over a parameter's elements → the name of such an element, and of the
        #: parameter.
        self.numbered: dict[str, tuple[str, str]] = {}

    def read(self) -> None:
        """Visit the function's body."""
        tree = syntax(self.function)
        for statement in tree.body if tree else ():
            self.visit(statement)

    def parameter(self, node: ast.AST | None) -> Evidence | None:
        """The parameter that ``node`` is, up to copies and casts, or some of its rows."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            preserved = node.func.attr in _PRESERVING
            return self.parameter(node.func.value) if preserved else None
        if isinstance(node, ast.Call):
            cast = isinstance(node.func, ast.Name) and node.func.id in _CASTS
            return self.parameter(node.args[0]) if cast and len(node.args) == 1 else None
        if isinstance(node, ast.Subscript):
            part = isinstance(node.slice, ast.Slice) and node.slice.step is None
            whole = self.parameter(node.value) if part else None
            return whole if whole is not None else self._of_inputs(node)
        return None

    def _of_attribute(self, node: ast.Attribute) -> Evidence | None:
        """What was kept on the context, or a field of a parameter: ``state.v``."""
        if isinstance(node.value, ast.Name) and node.value.id == self.ctx:
            return self.attributes.get(node.attr)
        owner = self.parameter(node.value)
        if owner is not None and node.attr in owner.fields:
            return owner.fields[node.attr]
        return owner if node.attr == "data" else None

    def root(self, node: ast.AST | None) -> Evidence | None:
        """The parameter whose elements ``node`` holds, all of them or some: ``pairs[:, 0]``,
        ``labels.view(-1)``, ``i`` after ``i, j = pairs.t()``."""
        found = self.parameter(node)
        if found is not None:
            return found
        if isinstance(node, ast.Name):
            return self.derived.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.root(node.value) if node.attr in _TRANSPOSING else None
        if isinstance(node, ast.Subscript):
            return None if self._shape_of(node.value) else self.root(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            same = called.attr in _VIEWS | _PRESERVING or called.attr in ("tolist", "item")
            return self.root(called.value) if same else None
        return None

    def part(self, node: ast.AST) -> Part | None:
        """The columns of a parameter that ``node`` holds."""
        return (
            self.columns.get(node.id)
            if isinstance(node, ast.Name)
            else part_of(node, self.parameter)
        )

    def like(self, node: ast.AST | None) -> Evidence | None:
        """The parameter that ``node`` has the shape of, since each element is computed from one of
        its elements, or normalised: ``torch.relu(w)``, ``w.softmax(0)``, ``w / w.sum()``."""
        found = self.parameter(node)
        if found is not None:
            return found
        if isinstance(node, ast.Name):
            return self.alike.get(node.id)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            left = self.like(node.left)
            return left if left is not None else self.like(node.right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            shaped = node.func.attr in _PRESERVING | _NORMALISING
            of = [node.func.value, *node.args[:1]] if shaped else []
            return next((item for part in of if (item := self.like(part)) is not None), None)
        return None

    def _as_numbers(self, node: ast.AST) -> Evidence | None:
        """The parameter whose elements ``a.tolist()`` gives."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return None
        return self.parameter(node.func.value) if node.func.attr == "tolist" else None

    def _parted(self, node: ast.AST) -> tuple[Evidence, bool] | None:
        """The parameter of which an unpacked ``node`` gives the parts, and whether these are its
        columns: ``pairs``, ``pairs.t()``, ``pairs.unbind(1)``."""
        whole = self.parameter(node)
        if whole is not None:
            return whole, False
        if isinstance(node, ast.Attribute) and node.attr in _TRANSPOSING:
            whole = self.parameter(node.value)
            return (whole, True) if whole is not None else None
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return None
        if node.func.attr not in ("t", "unbind"):
            return None
        whole = self.parameter(node.func.value)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        axis = literal(given[0])[1] if given else 0
        return (whole, node.func.attr == "t" or axis in (1, -1)) if whole is not None else None

    def _of_inputs(self, node: ast.Subscript) -> Evidence | None:
        """The parameter that ``inputs[2]`` is in ``setup_context(ctx, inputs, output)``."""
        if not self.inputs or not isinstance(node.value, ast.Name):
            return None
        known, position = literal(node.slice)
        if node.value.id != self.inputs[0] or not known or not isinstance(position, int):
            return None
        found = self.inputs[1]
        return found[position] if -len(found) <= position < len(found) else None

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

    def _axes_after(self, end: ast.expr, before: ast.expr) -> None:
        """Code for the axes of a tensor after the first few, where ``end`` is their number, is
        written for tensors that have some."""
        ranked = self._rank_of(end)
        known, first = literal(before)
        if ranked is not None and known and type(first) is int and 0 < first < 4:
            ranked.at_least(first)
            ranked.rank(first + 1, 2.5)


#: Weight of the evidence for a mask where the code asks whether an element of it is true
#: (heuristic: numbers are compared with something).
_ASKED = 4.0


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
            like = self.like(value)
            self.alike.pop(target.id, None)
            if like is not None:
                self.alike[target.id] = like
            held = self.root(value)
            self.derived.pop(target.id, None)
            if held is not None:
                self.derived[target.id] = held
            part = self.part(value)
            self.columns.pop(target.id, None)
            if part is not None:
                self.columns[target.id] = part
            if found is not None:
                self.names[target.id] = found
            elif target.id in self.names and not self.nested:
                del self.names[target.id]
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == self.ctx:
                self._keep(target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.visit(target)

    def _keep(self, attribute: str, value: ast.expr) -> None:
        """``ctx.attribute = value``: a parameter, or a tuple of them."""
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        found = [self.parameter(part) for part in parts]
        for item in found:
            if item is not None:
                item.kept = True
                for kind in ("float", "int", "bool"):
                    item.say(kind, 0.4)
        if parts[:1] == [value]:
            if found[0] is not None:
                self.attributes[attribute] = found[0]
        elif any(item is not None for item in found):
            fields = {f"[{place}]": item or Evidence("") for place, item in enumerate(found)}
            self.attributes[attribute] = Evidence("", fields=fields)

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
        parts = self._known_parts(targets, value, starred)
        if parts is not None:
            self._name(targets, parts)
            return
        if isinstance(value, (ast.Tuple, ast.List)):
            for target, item in zip(targets, value.elts, strict=False):
                self._assign(target, item)
            return
        numbers = self._as_numbers(value)
        if numbers is not None and not starred:
            numbers.say("any", 2.0)
            numbers.rank(1, 2.0 if self.nested else 6.0)
            numbers.shape = numbers.shape or (f"={len(targets)}",)
            self._name(targets, [])
            return
        self._unpack_parts(targets, value, starred)
        if not starred:
            self._split(value, len(targets))
            self._unpack_matrix(targets, value)
        found = self.parameter(value)
        if found is not None and not starred:
            _say_unpacked(found, len(targets))
        for target in targets:
            if isinstance(target, ast.Name) and not self.nested:
                self.names.pop(target.id, None)

    def _known_parts(
        self, targets: list[ast.expr], value: ast.expr, starred: bool
    ) -> list[Evidence | None] | None:
        """The parameters that ``value`` holds: all inputs, what was saved, the fields of one, or
        the arguments behind ``*args``. None where that is not known."""
        if isinstance(value, ast.Name) and self.inputs and value.id == self.inputs[0]:
            return list(self.inputs[1])
        if isinstance(value, ast.Attribute) and value.attr == "saved_tensors":
            return self.saved
        whole = self.parameter(value)
        if whole is None or starred:
            return None
        if not self.nested and not whole.fields and not whole.classes:
            parts = _taken_apart(whole.name, targets, set(self.names))
            if whole.passing == "varargs" or _are_of_several_kinds(parts):
                whole.fields = parts
                whole.length = len(parts) or whole.length
        return list(whole.fields.values()) if len(whole.fields) == len(targets) else None

    def _unpack_parts(self, targets: list[ast.expr], value: ast.expr, starred: bool) -> None:
        """``i, j = pairs.t()``: the names hold elements of a tensor, which has as many columns (or
        rows) if they turn out to be indices."""
        parted = self._parted(value)
        for place, target in enumerate(targets):
            if isinstance(target, ast.Name):
                self.derived.pop(target.id, None)
                self.columns.pop(target.id, None)
                if parted is not None:
                    self.derived[target.id] = parted[0]
                    if parted[1] and not starred:
                        self.columns[target.id] = Part(parted[0], place, place + 1)
        if parted is not None and not starred:
            found, columns = parted
            sizes = (f"{found.name}.0", f"={len(targets)}")
            found.shape_of_tuples = sizes if columns else (sizes[1], f"{found.name}.1")

    def _split(self, value: ast.expr, count: int) -> None:
        """``a, b = x.split(4, -1)``: the axis has as many elements as the parts."""
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
            return
        whole = self.parameter(value.func.value)
        named = {keyword.arg: keyword.value for keyword in value.keywords}
        given = [*value.args, *filter(None, [named.get("dim")])]
        if value.func.attr != "split" or whole is None or not value.args or len(given) > 2:
            return
        sizes = literal(given[0])[1]
        axis = literal(given[1])[1] if len(given) == 2 else 0
        if type(sizes) is int:
            sizes = [sizes] * count
        if type(axis) is int and _are_sizes(sizes):
            whole.split[axis] = sum(sizes)

    def _unpack_matrix(self, targets: list[ast.expr], value: ast.expr) -> None:
        """``(a, b), (c, d) = m``: a matrix, if it is a tensor."""
        whole = self.parameter(value)
        rows = [target.elts for target in targets if isinstance(target, (ast.Tuple, ast.List))]
        lengths = {len(row) for row in rows}
        named = all(isinstance(item, ast.Name) for row in rows for item in row)
        if whole is None or len(rows) != len(targets) or len(lengths) != 1 or not named:
            return
        whole.say("any", 2.0)
        whole.rank(2, 2.0 if self.nested else 6.0)
        whole.shape = whole.shape or (f"={len(rows)}", f"={lengths.pop()}")

    def _name(self, targets: list[ast.expr], sources: list[Evidence | None]) -> None:
        """From here on, names in ``targets`` stand for ``sources``, and those of a tuple among them
        for parts of one: ``x, (i, j) = ctx.saved_tensors``."""
        for target, source in itertools.zip_longest(targets, sources[: len(targets)]):
            if isinstance(target, (ast.Tuple, ast.List)):
                if source is not None and not any(isinstance(e, ast.Starred) for e in target.elts):
                    source.length = source.length or len(target.elts)
                parts = list(source.fields.values()) if source is not None else []
                self._name(target.elts, parts if len(parts) == len(target.elts) else [])
            elif isinstance(target, ast.Name):
                if source is not None:
                    self.names[target.id] = source
                else:
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
        if isinstance(node.target, ast.Name) and "range(" in ast.unparse(node.iter):
            self.counters.add(node.target.id)
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def _visit_parts_first(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        for part in node.generators:
            self.visit(part)
        if not self._of_each(node):
            self.visit(node.elt)

    def _of_each(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> bool:
        """``(p.view(1, -1) for p in (low, high))``: what is done with ``p`` is done with each."""
        part = node.generators[0]
        items = part.iter.elts if isinstance(part.iter, (ast.Tuple, ast.List)) else []
        known = [found for item in items if (found := self.parameter(item)) is not None]
        if len(node.generators) > 1 or not isinstance(part.target, ast.Name) or not known:
            return False
        name = part.target.id
        before = self.names.get(name)
        for found in known:
            self.names[name] = found
            self.visit(node.elt)
        if before is None:
            del self.names[name]
        else:
            self.names[name] = before
        return True

    visit_ListComp = visit_SetComp = visit_GeneratorExp = _visit_parts_first

    def _loop(self, target: ast.expr, over: ast.expr) -> None:
        """``for i, j in pairs.tolist()``: the names hold elements of a tensor, which has as many
        columns if they turn out to be indices; likewise through ``enumerate`` and ``zip``."""
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if over.func.id == "enumerate" and len(parts) == 2 and over.args:
                self._loop(parts[1], over.args[0])
                counter, item = parts
                whole = self.parameter(over.args[0])
                if (
                    isinstance(counter, ast.Name)
                    and isinstance(item, ast.Name)
                    and whole is not None
                ):
                    self.numbered[counter.id] = item.id, whole.name
            elif over.func.id == "zip" and len(parts) == len(over.args):
                seen: list[Evidence] = []
                for part, item in zip(parts, over.args, strict=True):
                    self._loop(part, item)
                    held = self.root(item) if _is_call_of(item, "tolist") else None
                    if held is not None:
                        held.adjacent |= held in seen
                        seen.append(held)
                self._side_by_side(over.args)
        held = self.root(over) if _is_call_of(over, "tolist") else None
        if held is None:
            return
        names = [item for item in ast.walk(target) if isinstance(item, ast.Name)]
        for name in names:
            self.derived[name.id] = held
        if isinstance(target, (ast.Tuple, ast.List)) and len(names) == len(target.elts):
            held.shape_of_tuples = (f"{held.name}.0", f"={len(names)}")

    def _side_by_side(self, items: list[ast.expr]) -> None:
        """``zip(w, xs)``: where one is a tensor and the other a sequence, one number for each."""
        found = [(self.like(item), self.parameter(item)) for item in items]
        for owner, _ in found:
            for _, whole in found:
                if owner is not None and whole is not None and owner is not whole:
                    owner.for_each_of = owner.for_each_of or whole.name

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
        elif isinstance(test, ast.Subscript) and isinstance(test.slice, (ast.Name, ast.BinOp)):
            found = self.parameter(test.value)
            if found is not None:
                found.say("mask", _ASKED)  # ``if seen[t]``
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
            if not isinstance(rank, int) or not 0 <= rank <= 6:
                continue
            if equal:
                ranked.named_ranks.add(rank)
            if equal if holds else different:
                ranked.rank(rank, 5.0 if sure else 0.8)

    def _isinstance(self, call: ast.Call, weight: float) -> None:
        found = self.parameter(call.args[0]) if len(call.args) == 2 else None
        if found is None:
            return
        text = ast.unparse(call.args[1])
        for word, kind in _CLASS_KINDS:
            if word in text:
                found.say(kind, weight)


def _is_call_of(node: ast.expr, method: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
    )


def _taken_apart(name: str, targets: list[ast.expr], known: set[str]) -> dict[str, Evidence]:
    """Evidence for each argument behind ``*name`` from the names that they are given, ``x, w, (a,
    b) = args``; none where other things than names and tuples of them are given."""
    found: dict[str, Evidence] = {}
    for index, target in enumerate(targets):
        place = f"{name}[{index}]"
        if isinstance(target, ast.Name):
            part = found[place] = Evidence(place if target.id in known else target.id)
            read_name(part)
            part.domain = _names.square_domain(target.id) or _names.domain(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            part = found[place] = Evidence(place)
            part.fields = _taken_apart(place, target.elts, known)
            if not part.fields:
                return {}
        else:
            return {}
    return found


def _are_of_several_kinds(parts: dict[str, Evidence]) -> bool:
    """Whether the names into which an argument is unpacked are those of tensors and numbers, or of
    numbers and indices: ``src, dst, n = graph``. Those of one kind may be the rows of a tensor."""
    weights = [_names.kinds(part.name) for part in parts.values()]
    kinds = {max(found, key=found.__getitem__) for found in weights if found}
    return "int" in kinds and bool(kinds & {"index", "tensor", "mask"})


def _say_unpacked(found: Evidence, count: int) -> None:
    """A parameter is unpacked into ``count`` names."""
    if found.length != count:  # a helper that is called five times says it once
        found.say("tensors", 2.0)
        found.say("shape", 1.5)
    found.length = count
    if "index" in _names.kinds(found.name) and not found.shape:
        # The two rows of a list of edges: a tensor of (2, E).
        found.say("index", 3.0)
        found.shape = (f"={count}", f"{found.name}.1")


def _are_sizes(sizes: object) -> TypeGuard[list[int]]:
    return isinstance(sizes, (list, tuple)) and all(
        type(size) is int and size > 0 for size in sizes
    )
