"""Which numbers may have either sign, as the code of a forward shows.

A shift may go either way, and so may a velocity for which the code chooses a side: a fault that the
sign of the default hides shows at the other one. Most numbers have no second sign, and what a
length or an epsilon below zero does says nothing, so that it takes code for negative ones:
``torch.roll`` by the number, its ``abs``, or a branch for those below zero that uses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.targets.source_file import literal

#: Comparisons with zero → whether they hold for negative numbers, and whether for zero.
_HOLDS = {ast.Lt: (True, False), ast.LtE: (True, True), ast.Gt: (False, False)}
_HOLDS |= {ast.GtE: (False, True)}

_ENDS = (ast.Return, ast.Raise, ast.Continue)


def of_either_sign(tree: ast.AST) -> frozenset[str]:
    """The names, dotted ones included, of what ``tree`` has code for below zero as well as above.

    A branch ``x > 0`` alone says little: what else is zero, or switched off. It counts where the
    other branch computes with the number.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found |= set(map(ast.unparse, _shifts(node)))
            if ast.unparse(node.func) == "torch.where" and len(node.args) == 3:
                test, then, otherwise = node.args
                found |= _named(test, [then], [otherwise])
        elif isinstance(node, ast.IfExp):
            found |= _named(node.test, [node.body], [node.orelse])
        for body in _bodies(node):
            for place, statement in enumerate(body):
                if isinstance(statement, ast.If):
                    ends = isinstance(statement.body[-1], _ENDS)
                    rest = [*statement.orelse, *(body[place + 1 :] if ends else ())]
                    found |= _named(statement.test, statement.body, rest)
    return frozenset(found)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _shifts(call: ast.Call) -> Iterator[ast.expr]:
    """What ``abs`` is taken of, and by how much elements are rolled."""
    if isinstance(call.func, ast.Name) and call.func.id == "abs":
        yield from call.args[:1]
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "roll":
        of_torch = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
        given = call.args[of_torch : of_torch + 1]
        for shift in (*given, *(k.value for k in call.keywords if k.arg == "shifts")):
            yield from shift.elts if isinstance(shift, (ast.Tuple, ast.List)) else (shift,)


def _named(test: ast.expr, then: Sequence[ast.AST], otherwise: Sequence[ast.AST]) -> frozenset[str]:
    """The number that ``test`` compares with zero, if what runs below zero uses it."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return frozenset()
    if literal(test.comparators[0]) not in ((True, 0), (True, 0.0)):
        return frozenset()
    holds = _HOLDS.get(type(test.ops[0]))
    if holds is None:
        return frozenset()
    name = ast.unparse(test.left)
    below = then if holds[0] else otherwise
    return frozenset({name}) if any(_uses(part, name) for part in below) else frozenset()


def _uses(tree: ast.AST, name: str) -> bool:
    """Whether ``tree`` computes with ``name``: refusing it, or setting it, is no use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            return False
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
            return True
        read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if read and ast.unparse(node) == name:
            return True
    return False
