"""What backward says of the inputs by the tuples that it returns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from gradlint.inputs import _names
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import syntax

#: Weight of the evidence for a number where an argument without a gradient has the name of a
#: spacing: that of other names of numbers.
_SPACING = 3.0
#: Weight of the evidence against a tensor where backward returns None for it, and of that for other
#: kinds that something else speaks for; and the share of it where a Function inside returns it
#: (heuristic: half, since gradients may reach the argument in another way).
_NO_GRADIENT, _OTHER_KINDS, _PASSED_ON = 1.5, 0.7, 0.5
#: Methods that return the same elements in another form.
_SAME_ELEMENTS = ("reshape", "reshape_as", "to", "type_as", "view", "view_as")

#: Stands for the elements of a returned tuple that the text does not show.
_UNKNOWN_REST = object()


def read_returned_to(backward: Callable[..., Any], passed: Sequence[Evidence | None]) -> None:
    """Note of the arguments with which a Function is applied, by their position, those for which
    its backward returns something else than None: they are tensors. The others are less likely so.

    Args:
        backward: that of the Function.
        passed: the parameter that each argument is; None for other values.
    """
    tree = syntax(backward)
    if tree is None:
        return
    given, summed = _positions_given(tree, len(passed)), _positions_summed(tree)
    for index, item in enumerate(passed):
        if item is not None and given.get(index, False):
            item.say("tensor", 4.0)
            item.summed = item.summed or index in summed
        elif item is not None and index in given:
            _say_no_gradient(item, _PASSED_ON)


def read_returns(backward: Callable[..., Any], parameters: list[Evidence]) -> None:
    """Set ``differentiable`` and ``summed`` of each parameter from the tuples that backward
    returns."""
    tree = syntax(backward)
    if tree is None:
        return
    positions = [item for item in parameters if item.passing != "keyword"]
    if positions and positions[-1].passing == "varargs" and positions[-1].fields:
        positions[-1:] = positions[-1].fields.values()
    given = _positions_given(tree, len(positions))
    for index in _positions_summed(tree):
        if index < len(positions):
            positions[index].summed = True
    for index, evidence in enumerate(positions):
        if evidence.passing == "varargs" or index not in given:
            continue
        evidence.differentiable = given[index]
        if given[index]:
            evidence.say("tensor", 4.0)
        else:
            _say_no_gradient(evidence, 1.0)
            if _names.is_spacing(evidence.name):
                evidence.say("float", _SPACING)
            _say_numbers(evidence)


def _say_no_gradient(evidence: Evidence, share: float) -> None:
    """Note that backward returns None: a tensor is less likely."""
    evidence.say("tensor", -share * _NO_GRADIENT)
    for kind in ("int", "float", "bool", "index", "mask"):
        if kind in evidence.weights:
            evidence.say(kind, share * _OTHER_KINDS)


def _say_numbers(whole: Evidence) -> None:
    """Note that what a tuple holds, for which backward returns None, are numbers."""
    for part in whole.fields.values() if not whole.classes else ():
        part.differentiable = False
        part.say("float", 1.0)
        part.say("tensor", -_NO_GRADIENT)
        _say_numbers(part)


def returns_its_arguments(backward: Callable[..., Any], position: int) -> bool:
    """Whether what backward gets behind ``*grads`` is returned as it is from ``position`` on, as in
    ``return (None, *grads)``: there are as many inputs there as outputs."""
    tree = syntax(backward)
    own = tree.args.vararg if tree is not None else None
    if tree is None or own is None:
        return False
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Return) else None
        items = value.elts if isinstance(value, ast.Tuple) else []
        last = items[-1] if len(items) == position + 1 else None
        if isinstance(last, ast.Starred) and isinstance(last.value, ast.Name):
            return last.value.id == own.arg
    return False


def _positions_given(tree: ast.AST, count: int) -> dict[int, bool]:
    """Position → whether some ``return`` gives something else than None there; positions that
    ``ctx.needs_input_grad`` is asked for count where no ``return`` shows them. Where some
    ``return`` does not show an element, as in ``(*found, None)``, the None of another, which leaves
    early, says nothing."""
    assigned = _assignments(tree)
    given: dict[int, bool] = {}
    shown = count
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            for index, element in enumerate(_elements(node.value, assigned)):
                if element is _UNKNOWN_REST:
                    shown = min(shown, index)
                    break
                given[index] = given.get(index, False) or not _is_none(element, assigned)
    given = {index: found for index, found in given.items() if found or index < shown}
    for node in ast.walk(tree):
        needed = _needs_input_grad(node)
        if needed is not None and 0 <= needed < count:
            given.setdefault(needed, True)
    return given


def _positions_summed(tree: ast.AST) -> set[int]:
    """Positions at which some ``return`` gives a sum over all elements, or a multiple of one:
    ``(g * x).sum() / scale``."""
    assigned = _assignments(tree)
    return {
        index
        for node in ast.walk(tree)
        if isinstance(node, ast.Return) and node.value is not None
        for index, element in enumerate(_elements(node.value, assigned))
        if _is_whole_sum(element, assigned)
    }


def _is_whole_sum(node: Any, assigned: dict[str, list[ast.expr]]) -> bool:
    if isinstance(node, ast.Name):
        return any(_is_whole_sum(value, {}) for value in assigned.get(node.id, ()))
    if isinstance(node, ast.UnaryOp):
        return _is_whole_sum(node.operand, assigned)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        factors = (node.left, node.right) if isinstance(node.op, ast.Mult) else (node.left,)
        return any(_is_whole_sum(factor, assigned) for factor in factors)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr in _SAME_ELEMENTS:
        return _is_whole_sum(node.func.value, assigned)
    arguments = 1 if ast.unparse(node.func.value) == "torch" else 0
    return node.func.attr == "sum" and len(node.args) == arguments and not node.keywords


def _elements(value: Any, assigned: dict[str, list[ast.expr]], depth: int = 0) -> list[Any]:
    """Elements of a returned expression; ends with a mark where the text does not show the rest."""
    if isinstance(value, ast.Tuple):
        return _tuple_elements(value, assigned, depth)
    if isinstance(value, ast.List):
        return list(value.elts)
    if isinstance(value, ast.BinOp):
        return _combined_elements(value, assigned, depth)
    if isinstance(value, ast.Name) and depth < 3:
        known = assigned.get(value.id, [])
        if len(known) == 1 and isinstance(known[0], (ast.Tuple, ast.List)):
            return _elements(known[0], assigned, depth + 1)
    called = value.func if isinstance(value, ast.Call) and value.args else None
    if isinstance(called, ast.Name) and called.id in ("tuple", "list"):
        return [_UNKNOWN_REST]
    return [value]


def _tuple_elements(value: ast.Tuple, assigned: dict[str, list[ast.expr]], depth: int) -> list[Any]:
    found: list[Any] = []
    for item in value.elts:
        if isinstance(item, ast.Starred):
            inner = _elements(item.value, assigned, depth)
            if inner == [item.value]:  # a comprehension or a call: of how many, nobody knows
                inner = [_UNKNOWN_REST]
            found += inner
            if found and found[-1] is _UNKNOWN_REST:
                return found
        else:
            found.append(item)
    return found


def _combined_elements(
    value: ast.BinOp, assigned: dict[str, list[ast.expr]], depth: int
) -> list[Any]:
    """``(a, b) + (None,) * 3``."""
    left = value.left
    if isinstance(value.op, ast.Add) and isinstance(left, (ast.Tuple, ast.List, ast.BinOp)):
        return _elements(left, assigned, depth) + _elements(value.right, assigned, depth)
    if isinstance(value.op, ast.Mult) and isinstance(left, (ast.Tuple, ast.List)):
        count = value.right
        times = count.value if isinstance(count, ast.Constant) else None
        # An unknown count of one constant: enough of them for any signature.
        return list(left.elts) * (times if isinstance(times, int) else 24)
    return [value]


def _is_none(node: Any, assigned: dict[str, list[ast.expr]]) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Name):
        values = assigned.get(node.id)
        return bool(values) and all(_is_none(value, {}) for value in values or ())
    return False


def _assignments(tree: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, found)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
    return found


def _bind(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        found.setdefault(target.id, []).append(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts: list[ast.expr] = [value] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            parts = value.elts
        for item, part in zip(target.elts, parts, strict=True):
            _bind(item, part, found)


def _needs_input_grad(node: ast.AST) -> int | None:
    """The index in ``ctx.needs_input_grad[index]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    if node.value.attr != "needs_input_grad" or not isinstance(node.slice, ast.Constant):
        return None
    index = node.slice.value
    return index if isinstance(index, int) else None
