"""From the frames of a failed attempt to the parameters and the conditions it failed on."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import torch

from gradlint.inputs._attempt import Failure, Frame
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._plan import Plan
from gradlint.inputs._source import statements_at
from gradlint.inputs.stand_ins import Attributes

_Node = TypeVar("_Node", bound=ast.AST)

#: Functions and methods that give sizes or numbers of axes.
_OF_SIZES = frozenset({"size", "numel", "dim", "len"})


class FailedAttempt:
    """A failed attempt of ``plan``; finds the parameters and conditions that it failed on."""

    def __init__(
        self, plan: Plan, failure: Failure, evidence: dict[str, Evidence] | None = None
    ) -> None:
        self.plan = plan
        self.evidence = evidence or {}
        self.failure = failure
        self._fields = [name for name in plan.names if "." in name]
        for frame in failure.frames if self._fields else ():
            self._give_fields(frame)
        self.sizes = plan.sizes()
        self.labels: dict[int, list[str]] = {}
        for symbol, size in self.sizes.items():
            self.labels.setdefault(size, []).append(symbol)

    def owner(self, tensor: torch.Tensor) -> str:
        """The parameter whose axes ``tensor`` has; empty when none has."""
        best, most = "", 0
        with torch._C.DisableTorchFunctionSubclass():  # a class of the user's may refuse to tell
            shape = list(tensor.shape)
        for name, guess in self.plan.tensors():
            sizes = [self.sizes[axis] for axis in guess.axes]
            common = len(set(sizes) & set(shape))
            exact = 2 if sizes == shape else 0
            if common + exact > most:
                best, most = name, common + exact
        return best

    def _give_fields(self, frame: Frame) -> None:
        """Give the attributes of objects, ``cfg.stride``, to a frame as names of their own."""
        for name in self._fields:
            owner, _, attribute = name.partition(".")
            held = frame.names.get(owner)
            if isinstance(held, Attributes) and attribute in vars(held):
                frame.names[name] = vars(held)[attribute]

    def _spelled(self, node: _Node) -> _Node:
        """``node`` with the attributes of objects as names of their own: all else that is said of a
        parameter is then said of them."""
        if not any(ast.unparse(part) in self._fields for part in _attributes(node)):
            return node
        fields = self._fields

        class Spelled(ast.NodeTransformer):
            def visit_Attribute(self, part: ast.Attribute) -> ast.AST:
                text = ast.unparse(part)
                if text in fields:
                    return ast.copy_location(ast.Name(text, ast.Load()), part)
                return self.generic_visit(part)

        spelled: _Node = Spelled().visit(copy.deepcopy(node))
        return spelled

    def named(self, node: ast.AST, frame: Frame) -> list[str]:
        """Parameters that names in ``node`` refer to, in order."""
        found: list[str] = []
        for part in ast.walk(self._spelled(node) if self._fields else node):
            if not isinstance(part, ast.Name):
                continue
            value = frame.names.get(part.id)
            name = part.id if part.id in self.plan.names else ""
            if not name and isinstance(value, torch.Tensor):
                name = self.owner(value)
            if name and name not in found:
                found.append(name)
        return found or self.behind(node, frame)

    def behind(self, node: ast.AST, frame: Frame) -> list[str]:
        """Parameters that names in ``node`` were computed from, as ``dt`` from ``grid`` in
        ``dt = grid[1:] - grid[:-1]``; no farther back."""
        parts = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        computed = {id for id in parts if isinstance(frame.names.get(id), torch.Tensor)}
        found: list[str] = []
        for outer in statements_at(frame.filename, frame.line, frame.column)[:-1]:
            for made in ast.walk(outer) if isinstance(outer, ast.FunctionDef) else ():
                if not isinstance(made, ast.Assign) or made.lineno >= frame.line:
                    continue
                targets = {part.id for target in made.targets for part in _names_in(target)}
                if targets & computed:
                    names = (part.id for part in _names_in(made.value))
                    found += [n for n in names if n in self.plan.names and n not in found]
        return found

    def blamed(self) -> list[str]:
        """Parameters on the failing lines, those of the innermost line first."""
        found: list[str] = []
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if not statements:
                continue
            for name in self.named(_header(statements[-1]), frame):
                if name not in found:
                    found.append(name)
        return found

    def innermost(self) -> tuple[ast.stmt, Frame] | None:
        """The failing statement in the user's deepest frame."""
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if statements:
                last = statements[-1]
                return (self._spelled(last) if self._fields else last), frame
        return None

    def conditions(self) -> list[tuple[ast.expr, bool, Frame]]:
        """Conditions that stopped the code: expression, the truth value it should have, frame.

        Names that stand for sizes, as after ``n = x.numel()``, are replaced by what they stand for.
        """
        return self._spelled_conditions

    @cached_property
    def _spelled_conditions(self) -> list[tuple[ast.expr, bool, Frame]]:
        return [
            (with_sizes_spelled(self._spelled(test) if self._fields else test, frame), truth, frame)
            for test, truth, frame in self._conditions()
        ]

    def _conditions(self) -> Iterator[tuple[ast.expr, bool, Frame]]:
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if not statements:
                continue
            last = statements[-1]
            if isinstance(last, ast.Assert):
                yield last.test, True, frame
            elif isinstance(last, ast.Raise):
                for outer, inner in zip(statements[-2::-1], statements[:0:-1], strict=False):
                    if isinstance(outer, ast.If):
                        yield outer.test, inner not in outer.body, frame
                        break
            if not isinstance(last, (ast.Assert, ast.Raise)):
                return


def _names_in(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _attributes(node: ast.AST) -> Iterator[ast.Attribute]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Attribute))


def unmet(failed: FailedAttempt) -> int | None:
    """How much is missing until the conditions that stopped the code would let it pass: one for
    each comparison, two for each axis and one for each size that differs in a comparison of shapes.
    None where no condition did."""
    counts = [_distance(test, truth, frame) for test, truth, frame in failed.conditions()]
    return sum(counts) if counts else None


def _distance(test: ast.expr, truth: bool, frame: Frame) -> int:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _distance(test.operand, not truth, frame)
    known, holds = evaluate(test, frame)
    try:
        if known and bool(holds) is truth:
            return 0
    except Exception:  # of a value that is neither true nor false: anything
        return 1
    if isinstance(test, ast.BoolOp):
        return max(1, sum(_distance(value, truth, frame) for value in test.values))
    return _compared(test, truth, frame) if isinstance(test, ast.Compare) else 1


def _compared(test: ast.Compare, truth: bool, frame: Frame) -> int:
    """:func:`_distance` of a comparison that does not hold."""
    sides = [evaluate(side, frame)[1] for side in (test.left, *test.comparators)]
    shapes = [side for side in sides if isinstance(side, tuple)]
    if len(shapes) == len(sides):
        return max(1, sum(map(_difference, shapes, shapes[1:])))
    if truth and len(test.ops) > 1:
        return max(1, sum(_distance(link, True, frame) for link in links(test)))
    return 1


def links(test: ast.Compare) -> list[ast.Compare]:
    """The comparisons of two sides each that ``a == b == c`` is made of."""
    sides = [test.left, *test.comparators]
    return [
        ast.copy_location(ast.Compare(left, [operator], [right]), test)
        for left, operator, right in zip(sides, test.ops, sides[1:], strict=False)
    ]


def _difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    return 2 * abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other, strict=False))


def with_sizes_spelled(test: ast.expr, frame: Frame) -> ast.expr:
    """``test`` with each local name of a size, or of several, replaced by the expression that it
    was assigned: ``n - 1`` becomes ``x.numel() - 1``. Names assigned more than once stay."""
    statements = statements_at(frame.filename, frame.line, frame.column)
    function = next((s for s in statements if isinstance(s, ast.FunctionDef)), None)
    if function is None:
        return test
    spelled = _assigned(function)
    if not any(isinstance(node, ast.Name) and node.id in spelled for node in ast.walk(test)):
        return test

    class Spelled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            found = spelled.get(node.id, [])
            value = frame.names.get(node.id)
            size = type(value) is int or isinstance(value, (tuple, list))
            if len(found) != 1 or not size or not _is_size(found[0]):
                return node
            known, same = evaluate(found[0], frame)
            return found[0] if known and same == value else node

    return ast.fix_missing_locations(Spelled().visit(copy.deepcopy(test)))


@lru_cache(maxsize=64)
def _assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Name → what a function assigns to it, twice something where a loop does."""
    spelled: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _spell(target, node.value, spelled)
        elif isinstance(node, (ast.For, ast.AugAssign)):
            for part in ast.walk(node.target):
                if isinstance(part, ast.Name):
                    spelled.setdefault(part.id, []).extend([part, part])
    return spelled


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is made of sizes and numbers of axes alone, and can be evaluated
    again."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    called = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return called <= _OF_SIZES and bool((called | attributes) & (_OF_SIZES | {"shape", "ndim"}))


def _spell(target: ast.expr, value: ast.expr, spelled: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        spelled.setdefault(target.id, []).append(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        given = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
        for position, part in enumerate(target.elts):
            if given is not None and len(given) == len(target.elts):
                _spell(part, given[position], spelled)
            else:
                _spell(part, ast.Subscript(value, ast.Constant(position), ast.Load()), spelled)


def evaluate(node: ast.expr, frame: Frame) -> tuple[bool, Any]:
    """Whether ``node`` can be evaluated in ``frame``, and its value.

    It is an expression of the user's code that has just been evaluated there.
    """
    try:
        whole = ast.fix_missing_locations(ast.Expression(node))
        code = compile(whole, "<condition>", "eval")
        return True, eval(code, frame.globals, frame.names)
    except Exception:
        return False, None


def _header(statement: ast.stmt) -> ast.AST:
    """The part of a compound statement that is on its first line."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return ast.Tuple([item.context_expr for item in statement.items], ast.Load())
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Try)):
        return ast.Pass()
    return statement
