"""Arguments that are objects: a configuration, ``cfg.stride``, or a table, ``graph.weight``.

Where the code reads attributes of an argument that no tensor has, and does nothing else with it but
pass it on, an object with these attributes will do. Each is searched for as if it were an argument
of its own, under its dotted name.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import make_dataclass
from functools import lru_cache
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._annotations import read_name
from gradlint.inputs._evidence import MISSING, Evidence
from gradlint.inputs._source import syntax
from gradlint.inputs.stand_ins import Attributes

#: Attributes of an object at most; what has more is a program of its own (heuristic).
_MOST = 12

#: Kinds for which an attribute that is read says nothing: those of objects, and of no tensor.
_OF_OBJECTS = frozenset({"value", "module", "any", "none"})


#: Weight of the evidence for another kind that outweighs attributes (heuristic: as much as that of
#: a method of dicts or strings).
_WELL_KNOWN = 4.0


def objects_among(
    found: list[Evidence], forward: Callable[..., Any] | None
) -> dict[str, tuple[str, ...]]:
    """The parameters that are objects, as far as the code shows, with the attributes they need."""
    tree = syntax(forward) if forward is not None else None
    computed = set(_computed(tree)) if tree is not None else set()
    return {
        item.name: tuple(item.read)
        for item in found
        if tree is not None and item.name not in computed and _is_object(item)
    }


def _is_object(item: Evidence) -> bool:
    known = item.fields or item.values or item.path or item.differentiable
    known = known or any(map(_is_made_otherwise, item.classes))
    if known or item.passing == "varargs" or item.default not in (MISSING, None):
        return False
    others = any(not hasattr(torch.Tensor, name) for name in item.read)
    if not others or item.called or len(item.read) > _MOST:
        return False  # it may be a tensor, or needs methods
    likely = {kind for kind, weight in item.weights.items() if weight >= _WELL_KNOWN}
    return likely <= _OF_OBJECTS


def _is_made_otherwise(annotated: type) -> bool:
    """Whether an object of the class that an annotation names can be passed as it is."""
    if issubclass(annotated, (torch.Tensor, torch.nn.Module, enum.Enum)):
        return True
    try:
        annotated()
    except Exception:
        return False
    return True


def _computed(tree: ast.AST) -> Iterator[str]:
    """The names that stand for numbers, tensors, functions or containers: what is computed with,
    called, indexed or gone through. And those of objects that are written to: what one holds is
    not the same at every call."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        match node:
            case ast.BinOp(left, _, right):
                parts = [left, right]
            case ast.UnaryOp(ast.USub(), operand):
                parts = [operand]
            case ast.Compare(left, operators, others):
                plain = all(isinstance(item, (ast.Is, ast.IsNot)) for item in operators)
                parts = [] if plain else [left, *others]
            case ast.Subscript(value) | ast.Starred(value):
                parts = [value]
            case ast.Attribute(value, _, ast.Store()):
                parts = [value]
            case ast.Call(called):
                parts = [called]
            case ast.For(_, iterated) | ast.comprehension(_, iterated):
                parts = [iterated]
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def give_fields(item: Evidence, names: tuple[str, ...], *, of_function: bool) -> None:
    """Evidence about each of the attributes of a parameter, from their names.

    Args:
        of_function: whether the op is a Function, which passes no gradient into an object.
    """
    for name in names:
        own = item.fields[name] = Evidence(f"{item.name}.{name}", item.passing)
        named = Evidence(name)
        read_name(named)
        own.weights, own.ranks = named.weights, named.ranks
        own.domain = _names.square_domain(name) or _names.domain(name)
        own.differentiable = False if of_function else None


def taken_apart(found: list[Evidence], objects: Collection[str]) -> list[Evidence]:
    """``found`` with the fields of ``objects`` in place of these."""
    made: list[Evidence] = []
    for item in found:
        made += item.fields.values() if item.name in objects else [item]
    return made


@lru_cache(maxsize=256)
def _class_of(names: tuple[str, ...], beyond: bool) -> type:
    fields = [(name, Any) for name in names]
    space = {"beyond": beyond}
    return make_dataclass(
        "Attributes", fields, bases=(Attributes,), namespace=space, repr=False, eq=False
    )


def put_together(values: dict[str, Any], *, beyond: bool = False) -> Attributes:
    """An object with these attributes.

    Args:
        beyond: whether backward reads others of them than forward does.
    """
    made: Attributes = _class_of(tuple(values), beyond)(**values)
    return made
