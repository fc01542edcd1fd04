"""What an operator declares about itself: surrogate, once-differentiable, ignores, samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradlint.model.op import Intent
from gradlint.targets.nodes import class_node, function_node, method_node, vars_of
from gradlint.targets.source_file import dotted
from gradlint.targets.suppressions import head_of, suppressions_in

#: A code, or the beginning of one: ``GL6`` is a whole family.
_CODE = re.compile(r"^GL\d{1,3}$")

#: How many layers of wrappers around a backward are searched.
_DEPTH = 8


def intent_of(thing: Any) -> Intent:
    """What ``thing`` (a Function class, module or callable) declares about its gradient."""
    surrogate = attribute(thing, "surrogate")
    if not (
        isinstance(surrogate, dict)
        and surrogate
        and all(isinstance(item, str) for pair in surrogate.items() for item in pair)
    ):
        surrogate = None
    stochastic = attribute(thing, "stochastic")
    return Intent(
        dict(surrogate) if surrogate else None,
        isinstance(thing, type) and is_once_differentiable(thing),
        stochastic if isinstance(stochastic, bool) else None,
    )


def is_once_differentiable(function: type) -> bool:
    """Whether the backward of a Function is marked ``@once_differentiable``."""
    mark = once_differentiable(lambda *args: None).__code__
    for name in ("backward", "vjp"):
        held = attribute(function, name)
        if held is not None and _wrapped_by(held, mark, _DEPTH):
            return True
    found = method_node(function, "backward", "vjp")
    if found is None or isinstance(found[1], ast.Lambda):
        return False
    return any(
        dotted(decorator).rpartition(".")[2] == "once_differentiable"
        for decorator in found[1].decorator_list
    )


def ignores_of(thing: Any) -> dict[str, str]:
    """Rule code → reason, from ``gradlint_ignore`` and from a comment on the line of ``class``
    or ``def``: ``# gradlint: ignore[GL503] reason``."""
    found = dict(_comments(thing))
    declared = attribute(thing, "gradlint_ignore")
    if isinstance(declared, dict):
        found.update({str(code): str(reason) for code, reason in declared.items()})
    elif isinstance(declared, (list, tuple, set)):
        found.update({str(code): "" for code in declared})
    return {code: reason for code, reason in found.items() if _CODE.match(code)}


def order_of(thing: Any) -> int | None:
    """1 or 2 where ``thing`` declares the order of derivatives that it promises, by
    ``gradlint_order``, or by ``order`` in a Function class (elsewhere that may mean anything)."""
    declared = attribute(thing, "gradlint_order")
    if declared is None and isinstance(thing, type) and issubclass(thing, Function):
        declared = attribute(thing, "order")
    return declared if type(declared) is int and declared in (1, 2) else None


def samples_of(thing: Any) -> Callable[[], Any] | None:
    """The ``sample_inputs`` of ``thing`` as a zero-argument callable; None where it has none."""
    declared = attribute(thing, "sample_inputs")
    if declared is None or callable(declared):
        return declared
    return lambda: declared


def attribute(thing: Any, name: str) -> Any:
    """``getattr(thing, name, None)``; also None where a property of the user's class raises."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _wrapped_by(held: Any, mark: CodeType, depth: int) -> bool:
    """Whether a wrapper with the code ``mark`` is among the layers around a function."""
    if isinstance(held, (staticmethod, classmethod)):
        held = held.__func__
    held = getattr(held, "__func__", held)
    if not isinstance(held, FunctionType) or depth == 0:
        return False
    if held.__code__ is mark:
        return True
    inner = [vars_of(held).get("__wrapped__")]
    # Decorators without functools.wraps keep what they wrap in a closure only.
    inner += [_content(cell) for cell in held.__closure__ or ()]
    return any(_wrapped_by(item, mark, depth - 1) for item in inner)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _comments(thing: Any) -> dict[str, str]:
    found = class_node(thing) if isinstance(thing, type) else function_node(thing)
    if found is None:
        return {}
    source, node = found
    if isinstance(node, ast.Lambda):
        first = last = node.lineno
    else:
        first, last = head_of(node)
    return {code: item.reason for code, item in suppressions_in(source, first, last).items()}
