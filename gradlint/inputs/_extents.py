"""How far forward reads along the axes of its parameters: ``off[i] * x[i + 1]`` in a loop over
``range(x.shape[0] - 1)`` takes one element of ``off`` fewer than of ``x``.

Positions are linear in the variables of loops and in sizes of parameters. A loop that reads the
first elements of a parameter, and never asks how many there are, gives it a length.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gradlint.inputs._source import plain_function, resolve, syntax
from gradlint.model.related import LETTERS, Formula
from gradlint.targets.source_file import literal

#: A size: name of a parameter, axis, and what it is divided by, rounded down.
Size = tuple[str, int, int]
#: A sum: size, or name and number of a loop variable → factor; None → constant.
Sum = dict[Any, int]

#: Methods and functions whose result has the shape of what they are given.
_KEEP_SHAPE = frozenset(
    {"contiguous", "detach", "clone", "float", "double", "to", "cpu", "exp", "abs", "neg"}
    | {"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like"}
)
#: Functions called by forward that are read, one inside the other (heuristic).
_MOST_NESTED = 2


@dataclass
class Reading:
    """What is read along one axis.

    Args:
        ends: one beyond the last position, for each place that reads.
        starts: the first position likewise.
        unknown: whether some position could not be told.
        strides: step → where slices with that step begin: ``x[0::2]`` and ``x[1::2]``.
    """

    ends: list[Sum] = field(default_factory=list)
    starts: list[Sum] = field(default_factory=list)
    unknown: bool = False
    strides: dict[int, set[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Length:
    """The length of an axis: ``factors`` times sizes, plus ``constant``."""

    factors: tuple[tuple[Size, int], ...]
    constant: int

    def formula(self) -> Formula:
        """The length in the letters of its sizes, in order."""
        text = ""
        for letter, ((_, _, divisor), factor) in zip(LETTERS, self.factors, strict=False):
            size = letter if divisor == 1 else f"({letter} // {divisor})"
            size = size if abs(factor) == 1 else f"{abs(factor)} * {size}"
            text += f" {'+' if factor > 0 else '-'} {size}"
        if self.constant:
            text += f" {'+' if self.constant > 0 else '-'} {abs(self.constant)}"
        return Formula(text.strip().removeprefix("+ "))

    def same_as(self) -> tuple[str, int] | None:
        """The parameter and axis that has this length, if it is that of one."""
        if len(self.factors) == 1 and not self.constant:
            (name, axis, divisor), factor = self.factors[0]
            return (name, axis) if factor == divisor == 1 else None
        return None


def readings(
    function: Callable[..., Any], parameters: Iterable[str]
) -> dict[tuple[str, int], Reading]:
    """Parameter and axis → what ``function`` reads there."""
    tree = syntax(function)
    found: dict[tuple[str, int], Reading] = {}
    if tree is not None:
        names = {name: name for name in parameters}
        _Extents(function, names, found).block(tree.body)
    return found


def lengths(found: dict[tuple[str, int], Reading]) -> dict[tuple[str, int], Length]:
    """The lengths that loops give to axes."""
    made = {place: _length(place, item) for place, item in found.items() if not item.unknown}
    return {place: length for place, length in made.items() if length is not None}


def measured(found: dict[tuple[str, int], Reading]) -> set[tuple[str, int]]:
    """Axes that a loop reads as far as their own size says."""
    return {
        (name, axis)
        for (name, axis), item in found.items()
        if any(_owns(end, (name, axis)) for end in item.ends)
    }


def interleaved(found: dict[tuple[str, int], Reading]) -> dict[tuple[str, int], int]:
    """Axes of which every second element, or every third, is taken from each start."""
    return {
        place: step
        for place, item in found.items()
        for step, starts in item.strides.items()
        if starts == set(range(step))
    }


def _owns(end: Sum, place: tuple[str, int]) -> bool:
    return any(isinstance(key, tuple) and key[:2] == place for key in end)


def _length(place: tuple[str, int], reading: Reading) -> Length | None:
    ends = reading.ends
    if not ends or any(_owns(end, place) for end in ends):
        return None
    largest = ends[0]
    for end in ends[1:]:
        more = _plus(end, largest, -1)
        if any(key is not None for key in more):
            return None  # which is larger depends on sizes
        largest = end if more.get(None, 0) > 0 else largest
    first = [start.get(None, 0) for start in reading.starts if not set(start) - {None}]
    constant = largest.get(None, 0)
    if len(first) == len(reading.starts) and min(first) > 0 > constant:
        constant += min(first)  # as many are left out at the end as at the beginning
    factors = tuple((key, factor) for key, factor in largest.items() if key is not None)
    return Length(factors, constant) if factors else None


def _plus(one: Sum, other: Sum, factor: int = 1) -> Sum:
    found = dict(one)
    for key, value in other.items():
        found[key] = found.get(key, 0) + factor * value
    return {key: value for key, value in found.items() if value}


class _Extents:
    """Reads one function body.

    Args:
        function: it.
        tensors: local name → parameter of that shape.
        found: what is read; added to.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tensors: dict[str, str],
        found: dict[tuple[str, int], Reading],
        depth: int = 0,
    ) -> None:
        self.function = function
        self.globals = getattr(function, "__globals__", {})
        self.tensors = tensors
        self.found = found
        self.depth = depth
        #: Local name → size or loop variable.
        self.sums: dict[str, Sum] = {}
        #: Loop variable → its first and last value, the innermost loop last.
        self.bounds: dict[str, tuple[Sum, Sum]] = {}
        self.loops = 0
        #: Names of loop variables of which nothing is known.
        self.strange: set[str] = set()

    # Statements.

    def block(self, body: list[ast.stmt]) -> None:
        """Read statements in order."""
        before = dict(self.bounds)
        for statement in body:
            self.statement(statement)
        self.bounds = before

    def statement(self, node: ast.stmt) -> None:
        """Read one statement."""
        if isinstance(node, ast.Assign):
            self.expression(node.value)
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.For):
            self.expression(node.iter)
            self._loop(node.target, node.iter)
            self.block(node.body)
            self.block(node.orelse)
        elif isinstance(node, ast.If):
            self._branches(node)
        elif isinstance(node, ast.While):
            self._forget(node)
            self.expression(node.test)
            self.block(node.body)
        elif isinstance(node, ast.With):
            self.block(node.body)
        elif not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.sums.pop(node.target.id, None)
                self.strange.add(node.target.id)
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self.expression(part)

    def _branches(self, node: ast.If) -> None:
        self.expression(node.test)
        before = dict(self.bounds)
        self._narrow(node.test, True)
        self.block(node.body)
        self.bounds = dict(before)
        self._narrow(node.test, False)
        self.block(node.orelse)
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Continue)):
            self.bounds = before

    def _forget(self, loop: ast.While) -> None:
        """Nothing is known of what a loop with a condition counts."""
        for part in ast.walk(loop):
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                self.sums.pop(part.target.id, None)
                self.strange.add(part.target.id)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Name):
            total, tensor = self.sum(value), self.shaped(value)
            self.sums.pop(target.id, None)
            self.tensors.pop(target.id, None)
            self.strange.discard(target.id)
            if total is not None:
                self.sums[target.id] = total
            elif tensor is not None:
                self.tensors[target.id] = tensor
            else:
                self.strange.add(target.id)
        else:
            self.expression(target)

    def _unpack(self, targets: list[ast.expr], value: ast.expr) -> None:
        shape = value.value if isinstance(value, ast.Attribute) and value.attr == "shape" else None
        tensor = self.shaped(shape) if shape is not None else None
        for axis, target in enumerate(targets):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets):
                self._assign(target, value.elts[axis])
            elif isinstance(target, ast.Name):
                self.sums.pop(target.id, None)
                self.tensors.pop(target.id, None)
                self.strange.add(target.id)
                if tensor is not None:
                    self.strange.discard(target.id)
                    self.sums[target.id] = {(tensor, axis, 1): 1}

    # Loops.

    def _loop(self, target: ast.expr, source: ast.expr) -> None:
        """``for target in source``."""
        if isinstance(target, ast.Tuple):
            for part in target.elts:
                self._loop_variable(part, None)
            counted = isinstance(source, ast.Call) and ast.unparse(source.func) == "enumerate"
            over = self.shaped(source.args[0]) if counted and source.args else None  # type: ignore[attr-defined]
            if over is not None and len(source.args) == 1:  # type: ignore[attr-defined]
                self._loop_variable(target.elts[0], ({}, {(over, 0, 1): 1, None: -1}))
        else:
            self._loop_variable(target, self._range(source))

    def _loop_variable(self, target: ast.expr, bounds: tuple[Sum, Sum] | None) -> None:
        if not isinstance(target, ast.Name):
            return
        self.tensors.pop(target.id, None)
        self.sums.pop(target.id, None)
        if bounds is None:
            self.strange.add(target.id)
            return
        self.strange.discard(target.id)
        self.loops += 1
        key = f"{target.id} {self.loops}"
        self.sums[target.id] = {key: 1}
        self.bounds[key] = bounds

    def _range(self, node: ast.expr) -> tuple[Sum, Sum] | None:
        """The first and the last value of ``range(…)``, in steps of one, up or down."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        called = ast.unparse(node.func)
        if called == "reversed" and len(node.args) == 1:
            return self._range(node.args[0])
        given = [self.sum(item) for item in node.args]
        if called != "range" or not given or None in given:
            return None
        sums = [item for item in given if item is not None]
        start, stop = ({}, sums[0]) if len(sums) == 1 else sums[:2]
        step = sums[2] if len(sums) == 3 else {None: 1}
        if step == {None: 1}:
            return start, _plus(stop, {None: -1})
        return (_plus(stop, {None: 1}), start) if step == {None: -1} else None

    def _narrow(self, test: ast.expr, truth: bool) -> None:
        """Bounds of a loop variable where ``test`` has a truth value: ``i > 0``, ``i < n - 1``."""
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == truth:
                for value in test.values:
                    self._narrow(value, truth)
            return
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return
        left, right = self.sum(test.left), self.sum(test.comparators[0])
        if left is None or right is None:
            return
        less = _plus(left, right, -1)  # compared with zero
        keys = [key for key in less if isinstance(key, str)]
        if len(keys) != 1 or abs(less[keys[0]]) != 1 or keys[0] not in self.bounds:
            return
        key = keys[0]
        # less = ±key + rest: zero where key is ∓rest.
        limit = _plus({}, {k: v for k, v in less.items() if k != key}, -less[key])
        if isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            self._equal(key, limit, isinstance(test.ops[0], ast.Eq) == truth)
        elif isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            strict = isinstance(test.ops[0], (ast.Lt, ast.Gt)) == truth
            below = isinstance(test.ops[0], (ast.Lt, ast.LtE)) == truth
            lowest, highest = self.bounds[key]
            step = {None: 1} if strict else {}
            if below == (less[key] > 0):
                self.bounds[key] = lowest, _plus(limit, step, -1)
            else:
                self.bounds[key] = _plus(limit, step), highest

    def _equal(self, key: str, limit: Sum, equal: bool) -> None:
        """Bounds of a loop variable that is ``limit``, or is not."""
        lowest, highest = self.bounds[key]
        if equal:
            self.bounds[key] = limit, limit
        elif limit == lowest:
            self.bounds[key] = _plus(lowest, {None: 1}), highest
        elif limit == highest:
            self.bounds[key] = lowest, _plus(highest, {None: -1})

    # Expressions.

    def expression(self, node: ast.AST) -> None:
        """Read an expression."""
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            before = dict(self.bounds), dict(self.sums)
            for generator in node.generators:
                self.expression(generator.iter)
                self._loop(generator.target, generator.iter)
                for test in generator.ifs:
                    self._narrow(test, True)
            self.expression(node.elt)
            self.bounds, self.sums = before
            return
        if isinstance(node, ast.IfExp):
            before_bounds = dict(self.bounds)
            self._narrow(node.test, True)
            self.expression(node.body)
            self.bounds = dict(before_bounds)
            self._narrow(node.test, False)
            self.expression(node.orelse)
            self.bounds = before_bounds
            return
        if isinstance(node, ast.Subscript):
            self._subscript(node)
        elif isinstance(node, ast.Call):
            self._call(node)
        for part in ast.iter_child_nodes(node):
            if not isinstance(part, (ast.expr_context, ast.operator, ast.Lambda)):
                self.expression(part)

    def _call(self, node: ast.Call) -> None:
        """A function of the user's that is given parameters reads them too."""
        called = plain_function(resolve(node.func, self.globals))
        tree = syntax(called) if called is not None and self.depth < _MOST_NESTED else None
        if called is None or tree is None or (called.__module__ or "").startswith("torch"):
            return
        names = [argument.arg for argument in tree.args.args]
        given = dict(zip(names, node.args, strict=False))
        given.update({item.arg: item.value for item in node.keywords if item.arg})
        tensors = {name: self.shaped(value) for name, value in given.items()}
        known = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        if known:
            inner = _Extents(called, known, self.found, self.depth + 1)
            inner.sums = {
                name: total
                for name, value in given.items()
                if (total := self.sum(value)) is not None
            }
            inner.bounds = dict(self.bounds)
            inner.loops = 1000 * (self.depth + 1)
            inner.block(tree.body)

    def _subscript(self, node: ast.Subscript) -> None:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        tensor = self.tensors.get(name)
        if tensor is None or isinstance(node.ctx, ast.Store):
            return
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for axis, item in enumerate(index):
            if isinstance(item, ast.Constant) and item.value is ...:
                rest = index[axis + 1 :]
                for place, last in enumerate(rest, -len(rest)):
                    self._read(self.found.setdefault((tensor, place), Reading()), last)
                return
            if isinstance(item, ast.Constant) and item.value is None:
                return
            self._read(self.found.setdefault((tensor, axis), Reading()), item)

    def _read(self, reading: Reading, item: ast.expr) -> None:
        if isinstance(item, ast.Slice):
            upper = self.sum(item.upper) if item.upper is not None else None
            lower = self.sum(item.lower) if item.lower is not None else {}
            moving = upper is not None and any(isinstance(key, str) for key in upper)
            if not moving or upper is None or lower is None or item.step is not None:
                known, step = literal(item.step) if item.step is not None else (True, 1)
                begins = lower is not None and upper is None and not set(lower) - {None}
                if known and type(step) is int and step > 1 and lower is not None and begins:
                    reading.strides.setdefault(step, set()).add(lower.get(None, 0))
                return
            self._note(reading, lower, upper)
            return
        position = self.sum(item)
        if position is None:
            reading.unknown = True
        elif any(isinstance(key, str) for key in position):
            self._note(reading, position, _plus(position, {None: 1}))

    def _note(self, reading: Reading, start: Sum, end: Sum) -> None:
        reading.starts.append(self._extreme(start, largest=False))
        reading.ends.append(self._extreme(end, largest=True))

    def _extreme(self, total: Sum, *, largest: bool) -> Sum:
        """The largest or smallest value that a sum has in its loops, the innermost taken first."""
        for key in reversed(self.bounds):
            factor = total.get(key, 0)
            if factor:
                bound = self.bounds[key][int((factor > 0) == largest)]
                total = _plus({k: v for k, v in total.items() if k != key}, bound, factor)
        return total

    def sum(self, node: ast.expr) -> Sum | None:
        """``node`` as a sum; None where it is none."""
        known, value = literal(node)
        if known:
            whole = type(value) is int
            return ({None: value} if value else {}) if whole else None
        if isinstance(node, ast.Name):
            return self.sums.get(node.id)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        size = self._size(node)
        return {(*size, 1): 1} if size is not None else None

    def _operation(self, node: ast.BinOp) -> Sum | None:
        left, right = self.sum(node.left), self.sum(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return _plus(left, right, 1 if isinstance(node.op, ast.Add) else -1)
        if isinstance(node.op, ast.Mult):
            for one, other in ((left, right), (right, left)):
                if not set(one) - {None}:
                    return _plus({}, other, one.get(None, 0))
        if isinstance(node.op, ast.FloorDiv) and set(right) == {None} and len(left) == 1:
            ((key, factor),) = left.items()
            if isinstance(key, tuple) and factor == 1 and right[None] > 0:
                return {(key[0], key[1], key[2] * right[None]): 1}
        return None

    def _size(self, node: ast.expr) -> tuple[str, int] | None:
        """The parameter and the axis whose size ``node`` is."""
        if isinstance(node, ast.Subscript):
            shape = node.value
            if isinstance(shape, ast.Attribute) and shape.attr == "shape":
                return self._place(shape.value, node.slice)
            if isinstance(shape, ast.Call) and not shape.args:
                called = shape.func
                if isinstance(called, ast.Attribute) and called.attr == "size":
                    return self._place(called.value, node.slice)
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id == "len" and len(node.args) == 1:
                return self._place(node.args[0], None)
            if isinstance(called, ast.Attribute) and called.attr == "size" and node.args:
                return self._place(called.value, node.args[0])
            if isinstance(called, ast.Attribute) and called.attr == "numel" and not node.args:
                return self._place(called.value, None)
        return None

    def _place(self, node: ast.expr, axis: ast.expr | None) -> tuple[str, int] | None:
        tensor = self.shaped(node)
        known, value = literal(axis) if axis is not None else (True, 0)
        return (tensor, value) if tensor is not None and known and type(value) is int else None

    def shaped(self, node: ast.expr) -> str | None:
        """The parameter whose shape ``node`` has."""
        if isinstance(node, ast.Name):
            return self.tensors.get(node.id)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return None
        if node.func.attr not in _KEEP_SHAPE:
            return None
        free = ast.unparse(node.func.value) == "torch"
        return self.shaped(node.args[0] if free and node.args else node.func.value)
