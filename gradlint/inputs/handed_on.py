"""What is said of an argument where it is handed on.

A module, or a function that users call, often does no more than apply a Function of its own, and
the documentation stands there: of arguments that it hands on as they are, it tells as much.
"""

from __future__ import annotations

import ast
from typing import Any

from torch.autograd import Function

from gradlint.inputs._source import plain_function, resolve, syntax
from gradlint.inputs.documentation import prose, prose_of_arguments
from gradlint.model.op import Op


def handed_on(op: Op) -> list[tuple[type, frozenset[str]]]:
    """The Functions that a module or a function applies, each with the arguments of ``op`` that it
    gets as they are; none for a Function itself."""
    if op.function is not None or op.signature is None:
        return []
    forward = plain_function(type(op.module).forward if op.module is not None else op.call)
    tree = syntax(forward) if forward is not None else None
    if forward is None or tree is None:
        return []
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    changed = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    unchanged = set(op.signature.parameters) - changed
    space = getattr(forward, "__globals__", {})
    found = []
    for node in ast.walk(tree):
        applied = _applied(node, space) if isinstance(node, ast.Call) else None
        if applied is not None and isinstance(node, ast.Call):
            found.append((applied, _alike(applied, node) & unchanged))
    return found


def _alike(applied: type, call: ast.Call) -> frozenset[str]:
    """The names of arguments of ``call`` that mean the same in the documentation of what it
    applies: those that no other parameter has there."""
    forward = plain_function(getattr(applied, "forward", None))
    tree = syntax(forward) if forward is not None else None
    own = [argument.arg for argument in tree.args.args] if tree is not None else []
    setup = plain_function(getattr(applied, "setup_context", None))
    if setup is None or setup.__module__.startswith("torch.autograd."):
        own = own[1:]  # the context
    given = {item.id: place for place, item in enumerate(call.args) if isinstance(item, ast.Name)}
    return frozenset(n for n, place in given.items() if n not in own or own.index(n) == place)


def _applied(call: ast.Call, space: dict[str, Any]) -> type | None:
    """The Function of the user's that a call applies."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "apply"):
        return None
    owner = resolve(call.func.value, space)
    return owner if isinstance(owner, type) and issubclass(owner, Function) else None


def prose_about(op: Op, name: str) -> str:
    """Docstrings and comments that may tell of the argument ``name``: those of ``op``, and of the
    Functions that get it as it is."""
    said = [prose(op.defining)] if op.defining is not None else []
    said += [prose_of_arguments(owner) for owner, names in handed_on(op) if name in names]
    return "\n".join(said)
