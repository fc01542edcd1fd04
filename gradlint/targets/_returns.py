"""The expression that backward returns at one position, and the statements that computed it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradlint.targets._static import FunctionNode
from gradlint.targets.source_file import bindings, dotted

#: Longest repetition such as ``(None,) * 5`` that is written out.
_LONGEST = 256

#: How many names of the returned tuple are followed: ``out = (a, b); grads = out; return grads``.
_HOPS = 4


def returned_element(
    function: FunctionNode | ast.Lambda, position: int, line: int | None
) -> tuple[ast.expr, list[ast.AST]] | None:
    """The expression returned at ``position``, and the statements that computed it.

    Args:
        function: the node of backward.
        position: index into the returned tuple; one that the text doesn't show (behind a starred
            element, beyond the end, negative) gives the whole returned expression.
        line: line of the ``return`` that was executed; default the last one of the function.

    Returns:
        The expression, and where it is a bare name the assignments and in-place writes it got
        its value from, in the order of their lines. None when nothing is returned.
    """
    if isinstance(function, ast.Lambda):
        whole: ast.expr | None = function.body
        statement: ast.AST = function
    else:
        found = _chosen(list(_returns(function)), line)
        if found is None:
            return None
        whole, statement = found.value, found
    if whole is None:
        return None
    body = [] if isinstance(function, ast.Lambda) else list(bindings(function.body))
    body = [item for item in body if item.lineno < getattr(statement, "lineno", 0)]
    element, related = _element(whole, position, body)
    if isinstance(element, ast.Name) and not related:
        related = _writes(element.id, body)
    return element, related


def _returns(function: FunctionNode) -> Iterator[ast.Return]:
    waiting: list[ast.AST] = list(function.body)
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, nested):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _chosen(found: list[ast.Return], line: int | None) -> ast.Return | None:
    with_value = [item for item in found if item.value is not None] or found
    if line is not None:
        for item in found:
            if item.lineno <= line <= (item.end_lineno or item.lineno):
                return item
    return with_value[-1] if with_value else None


def _element(
    whole: ast.expr, position: int, body: list[ast.stmt], hops: int = _HOPS
) -> tuple[ast.expr, list[ast.AST]]:
    """The element of ``whole`` at ``position``; ``whole`` itself where the text hides it."""
    if position < 0:
        return whole, []
    elements, complete = _flatten(whole, body)
    if position < len(elements):
        return _not_none(elements[position]), []
    if isinstance(whole, ast.IfExp):
        branches = [_element(branch, position, body, hops) for branch in (whole.body, whole.orelse)]
        known = [
            item
            for item, branch in zip(branches, (whole.body, whole.orelse), strict=True)
            if item[0] is not branch and not _is_none(item[0])
        ]
        return known[0] if len(known) == 1 else (whole, [])
    named = _inside_call(whole)
    if isinstance(named, ast.Name) and hops:
        return _element_of_name(whole, named.id, position, body, hops)
    if named is not whole and not complete:
        inner, related = _element(named, position, body, hops)
        return (whole, []) if inner is named else (inner, related)
    return (_not_none(whole), []) if position == 0 and not elements else (whole, [])


def _element_of_name(
    whole: ast.expr, name: str, position: int, body: list[ast.stmt], hops: int
) -> tuple[ast.expr, list[ast.AST]]:
    """Follow ``grads = (a, b); return grads`` and ``grads[1] = b; return tuple(grads)``."""
    for statement in reversed(body):
        for target, value in _assignments(statement):
            if (
                isinstance(target, ast.Subscript)
                and dotted(target.value) == name
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == position
            ):
                return value, []
            if isinstance(target, ast.Name) and target.id == name:
                before = [item for item in body if item.lineno < statement.lineno]
                inner, related = _element(value, position, before, hops - 1)
                if inner is not value:
                    if isinstance(inner, ast.Name):
                        related = [*related, *_writes(inner.id, before)]
                    return inner, related
                # A single gradient, or a tuple made in a way that the text does not show.
                return whole, []
    return whole, []


def _flatten(expression: ast.expr, body: list[ast.stmt]) -> tuple[list[ast.expr], bool]:
    """Elements of a tuple expression as far as its text shows them, and whether these are all.

    Inside sums, names are replaced by what ``body`` last assigned to them.
    """
    if isinstance(expression, (ast.Tuple, ast.List)):
        return _joined(
            _flatten(_named_value(element.value, body), body)
            if isinstance(element, ast.Starred)
            else ([element], True)
            for element in expression.elts
        )
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        sides = (_named_value(side, body) for side in (expression.left, expression.right))
        return _joined(_flatten(side, body) for side in sides)
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mult):
        repeated, complete = _flatten(expression.left, body)
        count = expression.right
        times = count.value if isinstance(count, ast.Constant) else None
        if complete and isinstance(times, int) and 0 <= times * len(repeated) <= _LONGEST:
            return repeated * times, True
        return [], False
    within = _inside_call(expression)
    return _flatten(within, body) if within is not expression else ([], False)


def _joined(parts: Iterable[tuple[list[ast.expr], bool]]) -> tuple[list[ast.expr], bool]:
    elements: list[ast.expr] = []
    for part, complete in parts:
        elements += part
        if not complete:
            return elements, False
    return elements, True


def _named_value(expression: ast.expr, body: list[ast.stmt]) -> ast.expr:
    """The tuple that was last assigned to a name, else the expression itself."""
    if isinstance(expression, ast.Name):
        for statement in reversed(body):
            for target, value in _assignments(statement):
                if isinstance(target, ast.Name) and target.id == expression.id:
                    return value if isinstance(value, (ast.Tuple, ast.List)) else expression
    return expression


def _inside_call(expression: ast.expr) -> ast.expr:
    """``x`` of ``tuple(x)`` and ``list(x)``, else the expression itself."""
    if (
        isinstance(expression, ast.Call)
        and dotted(expression.func) in ("tuple", "list")
        and len(expression.args) == 1
        and not isinstance(expression.args[0], (ast.Starred, ast.GeneratorExp))
    ):
        return expression.args[0]
    return expression


def _not_none(element: ast.expr) -> ast.expr:
    """The branch that computes something of ``g if needed else None``; else the element."""
    if isinstance(element, ast.IfExp):
        if _is_none(element.orelse):
            return _not_none(element.body)
        if _is_none(element.body):
            return _not_none(element.orelse)
    return element


def _is_none(expression: ast.expr | None) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, tuples taken apart where both sides show their parts."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pairs(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
        fits = parts is not None and len(parts) == len(target.elts)
        for index, item in enumerate(target.elts):
            inner = item.value if isinstance(item, ast.Starred) else item
            yield from _pairs(inner, parts[index] if parts is not None and fits else value)
    else:
        yield target, value


def _writes(name: str, body: list[ast.stmt]) -> list[ast.AST]:
    """Statements of ``body`` that gave ``name`` its final value: the last assignment that is not
    ``None``, and what was written into it afterwards."""
    made: list[ast.AST] = []
    for statement in body:
        if any(
            isinstance(target, ast.Name) and target.id == name and not _is_none(value)
            for target, value in _assignments(statement)
        ):
            made = [statement]
        elif made and _writes_into(statement, name):
            made.append(statement)
    return made


def _writes_into(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        return dotted(target.value if isinstance(target, ast.Subscript) else target) == name
    if isinstance(statement, ast.Assign):
        return any(
            isinstance(target, ast.Subscript) and dotted(target.value) == name
            for target in statement.targets
        )
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        owner, _, method = dotted(statement.value.func).rpartition(".")
        return owner == name and method.endswith("_") and not method.endswith("__")
    return False
