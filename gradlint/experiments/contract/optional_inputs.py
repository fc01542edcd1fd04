"""What stands in for an argument that is None: does it say that the argument has a gradient?

Where forward computes the default of an argument from an input and backward differentiates through
that default, what is given in its place has a gradient for the same reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from gradlint.experiments.contract.meant_gradients import method_of
from gradlint.targets.source_file import bindings, dotted

_T = TypeVar("_T")

#: Attributes and functions whose values do not depend on the numbers in their arguments, or whose
#: slope is zero.
_NO_SLOPE = frozenset(
    {"shape", "size", "dim", "ndim", "numel", "dtype", "device", "stride", "layout"}
    | {"detach", "data", "item", "tolist", "round", "floor", "ceil", "sign", "argmax", "argmin"}
    | {"zeros", "ones", "full", "empty", "eye", "arange", "len"}
)
_OF_A_SHAPE = re.compile(r"\w+_like|new_\w+")
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})

#: Names of the first state of a recurrence, as PyTorch's own and those by habit.
_FIRST_STATE = re.compile(r"[a-z]_?0|[hc]x")

#: Words in the names of arguments that are constants by habit where they are given, although
#: their defaults are computed from an input: statistics that were measured before, and baselines.
_MEASURED_BEFORE = re.compile(
    r"running|moving|ema|stat|mean|var|std|moment|baseline|prev|old|ref|target|anchor|teacher"
    r"|frozen|fixed|const|mask|noise|length|index|idx"
)


def default_tells(function: type, name: str, with_gradient: Sequence[str]) -> str:
    """Why the default of argument ``name`` says that it has a gradient, in words; empty if it does
    not. It holds where the gradients for ``with_gradient`` are right with that default.

    Args:
        function: the ``torch.autograd.Function``.
        name: of an argument of forward that is None by default.
        with_gradient: the arguments for which backward returns gradients.
    """
    forward = method_of(function, "forward")
    if forward is None or _MEASURED_BEFORE.search(name.lower()):
        return ""
    defaults = list(_instead(forward, name))
    source = _source(forward, defaults, with_gradient)
    if source:
        return f"where it is None, forward computes it from `{source}`, which has a gradient"
    zeros = any(_called(node) in _ZEROS for default in defaults for node in ast.walk(default))
    if zeros and _FIRST_STATE.fullmatch(name.lower()):
        return f"`{name}` is the first state of a recurrence by its name and its default of zeros"
    return ""


def _instead(forward: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """The expressions that are used where ``name`` is None, in place of it."""
    for node in ast.walk(forward):
        if isinstance(node, ast.IfExp):
            absent, given = _sides(node.test, name, node.body, node.orelse)
            if absent is not None and isinstance(given, ast.Name) and given.id == name:
                yield absent
        elif isinstance(node, ast.If):
            without, with_it = _sides(node.test, name, node.body, node.orelse)
            yield from _assigned(without or [], with_it or [], name)


def _sides(test: ast.expr, name: str, first: _T, second: _T) -> tuple[_T, _T] | tuple[None, None]:
    """What holds where ``name`` is None, and what where it is not, of the two sides of ``test``."""
    text = ast.unparse(test)
    if text == f"{name} is None":
        return first, second
    if text == f"{name} is not None":
        return second, first
    return None, None


def _assigned(
    absent: Sequence[ast.stmt], given: Sequence[ast.stmt], name: str
) -> Iterator[ast.expr]:
    """What is assigned to ``name`` where it is absent, or to what is ``name`` where it is given."""
    same = {name}
    for statement in given:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value) == name:
            same |= {dotted(target) for target in statement.targets}
    for statement in absent:
        if isinstance(statement, ast.Assign) and any(dotted(t) in same for t in statement.targets):
            yield statement.value


def _source(
    forward: ast.FunctionDef, defaults: Sequence[ast.expr], with_gradient: Sequence[str]
) -> str:
    """The first of the arguments on whose numbers a default depends; empty where none does."""
    origin = {name: name for name in with_gradient}
    for statement in bindings(forward.body):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign) and isinstance(value, ast.expr):
            for target in statement.targets:
                used = [origin[n] for n in _sloping(value) if n in origin]
                if isinstance(target, ast.Name) and used:
                    origin.setdefault(target.id, used[0])
    found = (origin[n] for default in defaults for n in _sloping(default) if n in origin)
    return next(found, "")


def _sloping(node: ast.AST) -> Iterator[str]:
    """Names on which an expression depends by more than their sizes."""
    called = _called(node)
    if called in _NO_SLOPE or _OF_A_SHAPE.fullmatch(called):
        return
    if isinstance(node, ast.Compare) or (
        isinstance(node, ast.Attribute) and node.attr in _NO_SLOPE
    ):
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _sloping(child)


def _called(node: ast.AST) -> str:
    """The last part of the name of the function that a call calls."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)
