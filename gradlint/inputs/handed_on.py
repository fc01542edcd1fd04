"""What is said of an argument where it is handed on.

A module, or a function that users call, often does no more than apply a Function of its own, and
the documentation stands there: of arguments that it hands on as they are, it tells as much. So does
that of a plain function that forward calls, whatever the arguments are called there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from types import FunctionType
from typing import Any

from torch.autograd import Function

from gradlint.inputs._source import plain_function, resolve, syntax
from gradlint.inputs.documentation import described, prose, prose_of_arguments
from gradlint.model.op import Op


def handed_on(op: Op) -> list[tuple[type, frozenset[str]]]:
    """The Functions that a module or a function applies, each with the arguments of ``op`` that it
    gets as they are; none for a Function itself."""
    if op.function is not None or op.signature is None:
        return []
    forward, tree = _forward(op)
    if forward is None or tree is None:
        return []
    unchanged = _unchanged(op, tree)
    space = getattr(forward, "__globals__", {})
    found = []
    for node in ast.walk(tree):
        applied = _applied(node, space) if isinstance(node, ast.Call) else None
        if applied is not None and isinstance(node, ast.Call):
            found.append((applied, _alike(applied, node) & unchanged))
    return found


def texts_of_callees(op: Op) -> list[tuple[str, frozenset[str]]]:
    """What is said of their parameters by the plain functions of its own package that forward
    calls, and by the Functions that it applies, with the names that arguments of ``op`` have there
    put into its own, each with these arguments: ``pull(input)``, where ``pull`` has "inp: (B, C,
    L)", says "input: (B, C, L)"."""
    forward, tree = _forward(op)
    if forward is None or tree is None:
        return []
    unchanged, found = _unchanged(op, tree), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        applied = _applied(node, forward.__globals__) if op.function is None else None
        if applied is not None:
            given = _given(_own_parameters(applied), node, unchanged)
            renamed = {name: item for name, item in given.items() if name != item}
            # Where the names are the same, :func:`handed_on` tells.
            if renamed and (text := prose_of_arguments(applied)):
                found.append((_renamed(text, renamed), frozenset(renamed.values())))
            continue
        called = resolve(node.func, forward.__globals__)
        own = plain_function(called) if isinstance(called, FunctionType) else None
        if not isinstance(own, FunctionType):
            continue
        if not _of_one_package(own, forward):
            continue
        given = _given(list(inspect.signature(own).parameters), node, unchanged)
        if given and (text := described(own)):
            found.append((_renamed(text, given), frozenset(given.values())))
    return found


def texts_where_handed_on(op: Op) -> list[tuple[str, frozenset[str]]]:
    """What is said of arguments of ``op`` by the Functions that it applies and by plain functions
    that it calls, each text with these arguments."""
    same = [(prose_of_arguments(owner), names) for owner, names in handed_on(op) if names]
    return [*same, *texts_of_callees(op)]


def _forward(op: Op) -> tuple[FunctionType | None, ast.FunctionDef | None]:
    """The function that computes ``op``, and its syntax."""
    owner = op.function or (type(op.module) if op.module is not None else None)
    forward = plain_function(owner.forward if owner is not None else op.call)
    tree = syntax(forward) if forward is not None else None
    return (forward, tree) if isinstance(forward, FunctionType) else (None, None)


def _unchanged(op: Op, tree: ast.FunctionDef) -> set[str]:
    """The arguments whose names mean the same throughout forward."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    changed = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return set(op.signature.parameters if op.signature is not None else ()) - changed


def _of_one_package(one: FunctionType, other: FunctionType) -> bool:
    first, second = (item.__module__.partition(".")[0] for item in (one, other))
    return first == second


def _given(own: list[str], call: ast.Call, names: set[str]) -> dict[str, str]:
    """Parameter of what is called, one of its ``own`` → the argument, one of ``names``, that it
    gets. None where another parameter there has the argument's name, or gets it too: two things of
    one name can't be told apart."""
    starred = [k for k, item in enumerate(call.args) if isinstance(item, ast.Starred)]
    passed = dict(zip(own, call.args[: starred[0]] if starred else call.args, strict=False))
    passed.update({item.arg: item.value for item in call.keywords if item.arg in own})
    given = {
        name: item.id
        for name, item in passed.items()
        if isinstance(item, ast.Name) and item.id in names
    }
    count = Counter(given.values())
    return {
        name: item
        for name, item in given.items()
        if count[item] == 1 and (item not in own or item in given)
    }


def _renamed(text: str, names: dict[str, str]) -> str:
    """``text`` with words replaced by others, all at once."""
    every = "|".join(map(re.escape, names))
    return re.sub(rf"(?<![\w.])(?:{every})(?!\w)", lambda word: names[word[0]], text)


def _alike(applied: type, call: ast.Call) -> frozenset[str]:
    """The names of arguments of ``call`` that mean the same in the documentation of what it
    applies: those that no other parameter has there."""
    own = _own_parameters(applied)
    given = {item.id: place for place, item in enumerate(call.args) if isinstance(item, ast.Name)}
    return frozenset(n for n, place in given.items() if n not in own or own.index(n) == place)


def _own_parameters(applied: type) -> list[str]:
    """The names of the arguments of a Function's forward."""
    forward = plain_function(getattr(applied, "forward", None))
    tree = syntax(forward) if forward is not None else None
    own = [argument.arg for argument in tree.args.args] if tree is not None else []
    setup = plain_function(getattr(applied, "setup_context", None))
    context = setup is None or setup.__module__.startswith("torch.autograd.")
    return own[1:] if context else own


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
