"""Lists of blocks or functions, where forward goes through a list and calls its parts.

A reversible Function takes a list of blocks, calls one after the other, and has backward call a
method of each that undoes it. Modules in the same file have that method. Where backward asks for
none, any functions will do.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs._plan import GroupGuess, Plan, ValueGuess
from gradlint.inputs._source import syntax
from gradlint.inputs.stand_ins import ClosureModule, Elementwise
from gradlint.model.op import Op
from gradlint.targets.signature import signature_of

#: Cost against the likeliest plan (heuristic: the methods that backward calls say more than names).
_COST = -0.3
#: How many blocks are passed: with one, the order in which they are undone does not show.
_BLOCKS = 2


def plans_of_blocks(op: Op, first: Plan) -> Iterator[Plan]:
    """Plans in which what forward goes through is a list of modules of the operator's own file that
    have the methods which backward calls of its parts; where it calls none, a list of modules of
    which nothing is known.

    Args:
        op: the operator.
        first: the likeliest plan, of which all else stays.
    """
    function = op.function
    forward = syntax(function.forward) if function is not None else None
    backward = syntax(function.backward) if function is not None else None
    if function is None or forward is None or backward is None:
        return
    methods = _methods_of_parts(backward)
    for name, beside, spread in _gone_through(forward):
        if name not in first.names or (not methods and _is_known(first, name)):
            continue
        for made in _made(function, methods) if methods else [_unknown(first)]:
            plan = first.changed(name, ValueGuess(made))
            for other in beside & set(first.names):
                plan = plan.changed(other, ValueGuess([{} for _ in made]))
            for other in spread & set(first.names):
                plan = plan.changed(other, ValueGuess({}))
            yield replace(plan, cost=first.cost + _COST)


def _is_known(plan: Plan, name: str) -> bool:
    """Whether the parts of ``name`` are functions as it is: what a default or an example gives."""
    guess = plan.guess(name)
    parts = guess.value if isinstance(guess, ValueGuess) else None
    return isinstance(parts, (list, tuple)) and bool(parts) and all(map(callable, parts))


def _unknown(plan: Plan) -> list[Any]:
    """Modules that work element by element; where the op gets tensors after its other arguments,
    these are the modules' parameters."""
    last = plan.guesses[-1]
    if isinstance(last, GroupGuess) and last.splice:
        return [ClosureModule(len(plan.names) - 1, k, _BLOCKS) for k in range(_BLOCKS)]
    return [Elementwise(k) for k in range(_BLOCKS)]


def called_parts(op: Op) -> set[str]:
    """Names of what forward goes through and whose parts it calls: nothing happens where there are
    none."""
    forward = syntax(op.function.forward) if op.function is not None else None
    return {name for name, _, _ in _gone_through(forward)} if forward is not None else set()


def _methods_of_parts(backward: ast.FunctionDef) -> set[str]:
    """Methods that backward calls of what it goes through, but those that every module has."""
    found: set[str] = set()
    for loop in _loops(backward):
        parts = _names(loop.target)
        for call in _calls(loop):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id in parts:
                assert isinstance(call.func, ast.Attribute)
                found.add(call.func.attr)
    return found.difference(dir(torch.nn.Module))


def _gone_through(forward: ast.FunctionDef) -> Iterator[tuple[str, set[str], set[str]]]:
    """A name that forward goes through and whose parts it calls; the names that give each call its
    keywords, and those that give all of them theirs."""
    for loop in _loops(forward):
        pairs = list(_pairs(loop.iter, loop.target))
        called = {c.func.id for c in _calls(loop) if isinstance(c.func, ast.Name)}
        spread = {
            keyword.value.id
            for call in _calls(loop)
            for keyword in call.keywords
            if keyword.arg is None and isinstance(keyword.value, ast.Name)
        }
        beside = {name for name, part in pairs if _names(part) & spread}
        for name, part in pairs:
            if isinstance(part, ast.Name) and part.id in called:
                yield name, beside - {name}, spread


def _pairs(source: ast.expr, target: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop goes through, each with what stands for a part of it."""
    match source, target:
        case ast.Name(name), _:
            yield name, target
        case ast.Subscript(inner, ast.Slice()), _:
            yield from _pairs(inner, target)
        case ast.Call(ast.Name("reversed" | "list" | "tuple"), [inner]), _:
            yield from _pairs(inner, target)
        case ast.Call(ast.Name("enumerate"), [inner, *_]), ast.Tuple([_, part]):
            yield from _pairs(inner, part)
        case ast.Call(ast.Name("zip"), items), ast.Tuple(parts):
            for item, part in zip(items, parts, strict=False):
                yield from _pairs(item, part)


def _made(function: type, methods: set[str]) -> Iterator[list[torch.nn.Module]]:
    """Lists of modules of classes beside ``function`` that have all ``methods``, around modules
    that work element by element."""
    beside = vars(sys.modules.get(function.__module__, torch.nn))
    for cls in list(beside.values()):
        if (
            isinstance(cls, type)
            and issubclass(cls, torch.nn.Module)
            and cls.__module__ == function.__module__
            and all(callable(getattr(cls, method, None)) for method in methods)
        ):
            try:
                yield [_around(cls, k) for k in range(_BLOCKS)]
            except Exception:  # a constructor can raise anything, and wants other arguments then
                continue


def _around(cls: type[torch.nn.Module], number: int) -> torch.nn.Module:
    signature = signature_of(cls)
    required = [
        name
        for name, parameter in (signature.parameters.items() if signature else ())
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_POSITIONAL
        and parameter.kind is not parameter.VAR_KEYWORD
    ]
    return cls(**{name: Elementwise(2 * number + k) for k, name in enumerate(required)})


def _loops(function: ast.FunctionDef) -> Iterator[ast.For]:
    return (node for node in ast.walk(function) if isinstance(node, ast.For))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
