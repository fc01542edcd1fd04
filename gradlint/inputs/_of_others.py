"""Optional arguments that follow from the others: a norm that may have been computed before, a mean
that forward computes where it gets none. With any other value a right backward looks wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import plain_function, syntax
from gradlint.inputs.handed_on import prose_about
from gradlint.model.op import Op

#: Names of arguments that results are written to, and of those that hold what was computed before.
_WRITTEN = re.compile(r"(?i)out|output|result|buffer|workspace|scratch")
_COMPUTED_NAME = re.compile(r"(?i)cache|pre_?comp|saved")
#: Words of documentation for the latter.
_COMPUTED = re.compile(r"(?i)\b(?:pre-?comput|cache|(?:already|previously|once) comput|reus)")
_SENTENCE = re.compile(r"(?<=[.;])\s|\n")

#: Functions whose results hold none of the values that they get, and what else tells of a tensor
#: without them.
_MAKES_CONSTANT = re.compile(r"(?:new_)?(?:zeros|ones|full|empty)(?:_like)?")
_OF_SHAPE = frozenset({"shape", "size", "numel", "dim", "ndim", "dtype", "device", "len"})

#: Assignments that are followed from a name to what it stands for.
_MOST_STEPS = 4


def is_of_others(op: Op, item: Evidence, tensors: Collection[str]) -> bool:
    """Whether a tensor must be that which forward would compute of the others: it is said to be
    computed before, or that is what forward puts in its place, and backward returns nothing for it.
    Results are written to some others.

    Args:
        op: the operator.
        item: the argument.
        tensors: names of the arguments that are tensors.
    """
    if _WRITTEN.fullmatch(item.name) or _COMPUTED_NAME.search(item.name):
        return True
    text = prose_about(op, item.name)
    said = (part for part in _SENTENCE.split(text) if re.search(rf"\b{item.name}\b", part))
    if any(_COMPUTED.search(part) for part in said):
        return True
    forward = plain_function(getattr(op.function, "forward", None) or op.call)
    if op.module is not None:
        forward = plain_function(type(op.module).forward)
    tree = syntax(forward) if forward is not None else None
    if tree is None or item.differentiable:
        return False
    known = {*tensors} - {item.name}
    return any(_reads_values(value, known, tree) for value in _put_in_place(tree, item.name))


def _put_in_place(tree: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """What a function assigns to the argument ``name`` where it is None."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _asks_for_none(node.test, name):
            for statement in node.body:
                if isinstance(statement, ast.Assign) and _stores(statement, name):
                    yield statement.value
        elif isinstance(node, ast.Assign) and _stores(node, name):
            value = node.value
            if isinstance(value, ast.IfExp) and _asks_for_none(value.test, name):
                yield value.body
            elif isinstance(value, ast.IfExp):
                yield value.orelse


def _asks_for_none(test: ast.expr, name: str) -> bool:
    return ast.unparse(test) == f"{name} is None"


def _stores(statement: ast.Assign, name: str) -> bool:
    parts = (part for target in statement.targets for part in ast.walk(target))
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _reads_values(
    node: ast.AST, tensors: Collection[str], tree: ast.FunctionDef, steps: int = _MOST_STEPS
) -> bool:
    """Whether an expression in ``tree`` depends on the values of ``tensors``, not on their shapes
    alone."""
    if isinstance(node, ast.Attribute) and node.attr in _OF_SHAPE:
        return False
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in _OF_SHAPE or _MAKES_CONSTANT.fullmatch(called):
            return False
    if not isinstance(node, ast.Name):
        inner = ast.iter_child_nodes(node)
        return any(_reads_values(part, tensors, tree, steps) for part in inner)
    if node.id in tensors or not steps:
        return node.id in tensors
    return any(
        _reads_values(other.value, tensors, tree, steps - 1)
        for other in ast.walk(tree)
        if isinstance(other, ast.Assign) and _stores(other, node.id)
    )
