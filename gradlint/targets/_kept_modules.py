"""Which arguments of a constructor are modules, or containers of them, by what the source does.

``assert isinstance(blocks, nn.ModuleList)``, the same of every element, ``inner.parameters()`` and
a call of ``self.inner`` in forward say of an argument without annotation what it must be. So do
``nn.ModuleList(blocks)``, ``nn.Sequential(*blocks)`` and ``Block(f, g) for f, g in blocks``: pairs
of modules, where ``Block`` is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.targets.nodes import class_node
from gradlint.targets.source_file import dotted

#: Attributes that modules have, and tensors, texts and containers have not.
_OF_MODULES = frozenset(dir(torch.nn.Module)).difference(
    *(dir(kind) for kind in (torch.Tensor, str, dict, list, tuple))
)


@dataclass(frozen=True)
class Kept:
    """What an argument is.

    Args:
        kind: a class whose instance is asked for; ``nn.Module`` where any module will do.
        element: the class of which a container's elements must be instances, or None.
        width: of a container of tuples, the number of their elements; 0 where there are no tuples.
    """

    kind: type
    element: type | None = None
    width: int = 0


def kept_modules(cls: type, names: Sequence[str]) -> dict[str, Kept]:
    """Argument of the constructor of ``cls`` → what it is, for those of ``names`` of which the
    source says it."""
    found = class_node(cls)
    if found is None:
        return {}
    tree, kept = found[1], {}
    init = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None
    )
    if init is None:
        return {}
    for name in names:
        holders = {name, f"self.{name}", *_attributes_of(init, name)}
        kinds = [item for item in _demanded(cls, tree, holders) if item is not None]
        elements = {v for holder in holders for v in _elements_of(tree, holder)}
        inner = [item for item in _demanded(cls, tree, elements) if item is not None]
        if kinds or inner:
            kept[name] = Kept(kinds[0] if kinds else list, inner[0] if inner else None)
        elif any(_fills_container(cls, call, name) for call in ast.walk(init)):
            kept[name] = Kept(list, torch.nn.Module)
        elif width := next(_widths(cls, init, name), 0):
            kept[name] = Kept(list, torch.nn.Module, width)
        elif _is_module(tree, holders):
            kept[name] = Kept(torch.nn.Module)
    return kept


def _attributes_of(init: ast.FunctionDef, name: str) -> Iterator[str]:
    """The attributes of ``self`` to which the argument itself is assigned."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and dotted(node.value) == name:
            yield from (dotted(target) for target in node.targets)


def _elements_of(tree: ast.ClassDef, holder: str) -> Iterator[str]:
    """The variables of loops over ``holder``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and dotted(node.iter) == holder:
            yield dotted(node.target)


def _widths(cls: type, init: ast.FunctionDef, name: str) -> Iterator[int]:
    """Lengths of the tuples in the argument, where a loop over it hands their elements to a class
    of modules."""
    for node in ast.walk(init):
        loops = node.generators if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else [node]
        for loop in loops:
            if not isinstance(loop, (ast.For, ast.comprehension)) or dotted(loop.iter) != name:
                continue
            parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
            names = {dotted(part) for part in parts}
            if names and any(_takes_all(cls, call, names) for call in ast.walk(node)):
                yield len(parts)


def _fills_container(cls: type, call: ast.AST, name: str) -> bool:
    """Whether ``call`` is ``nn.ModuleList(name)`` or ``nn.Sequential(*name)``."""
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return False
    made, given = _resolved(cls, call.func), call.args[0]
    if made is torch.nn.Sequential and isinstance(given, ast.Starred):
        return dotted(given.value) == name
    return made is torch.nn.ModuleList and dotted(given) == name


def _takes_all(cls: type, call: ast.AST, names: set[str]) -> bool:
    """Whether ``call`` makes a module of all of ``names``."""
    if not isinstance(call, ast.Call):
        return False
    given = {dotted(item) for item in (*call.args, *(keyword.value for keyword in call.keywords))}
    made = _resolved(cls, call.func) if names <= given else None
    return made is not None and issubclass(made, torch.nn.Module)


def _demanded(cls: type, tree: ast.ClassDef, holders: set[str]) -> Iterator[type | None]:
    """The classes of which one of ``holders`` must be an instance, or else something is raised."""
    for node in ast.walk(tree):
        test: ast.expr | None = None
        if isinstance(node, ast.Assert):
            test = node.test
        elif isinstance(node, ast.If) and any(isinstance(item, ast.Raise) for item in node.body):
            negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
            test = node.test.operand if negated else None  # type: ignore[attr-defined]
        for part in _conjuncts(test):
            if not isinstance(part, ast.Call) or dotted(part.func) != "isinstance":
                continue
            if len(part.args) == 2 and dotted(part.args[0]) in holders:
                yield _resolved(cls, part.args[1])


def _conjuncts(test: ast.expr | None) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return list(test.values)
    return [] if test is None else [test]


def _resolved(cls: type, expression: ast.expr) -> type | None:
    """The class that ``expression`` names in the module of ``cls``; the first of several."""
    if isinstance(expression, (ast.Tuple, ast.List)):
        return _resolved(cls, expression.elts[0]) if expression.elts else None
    first, *others = dotted(expression).split(".")
    thing: Any = vars(sys.modules.get(cls.__module__, ast)).get(first)
    for part in others:
        thing = getattr(thing, part, None)
    return thing if isinstance(thing, type) else None


def _is_module(tree: ast.ClassDef, holders: set[str]) -> bool:
    """Whether attributes of modules are read from one of ``holders``, and no other ones, or
    forward calls it with a tensor."""
    read = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and dotted(node.value) in holders
    ]
    if any(name in _OF_MODULES for name in read):
        return all(hasattr(torch.nn.Module, name) for name in read)
    own = {holder for holder in holders if holder.startswith("self.")}
    return not read and any(
        isinstance(node, ast.Call) and dotted(node.func) in own and bool(node.args)
        for method in tree.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
        for node in ast.walk(method)
    )
