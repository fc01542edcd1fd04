"""What a class reads from the objects that its constructor is given, such as ``config.dim``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradlint.targets.nodes import class_node
from gradlint.targets.source_file import dotted

#: Attributes of types that arguments usually have: reading them says nothing of an object.
_OF_VALUES = frozenset(name for kind in (torch.Tensor, str, dict, list) for name in dir(kind))


@dataclass(frozen=True)
class Attributes:
    """What is read from one object: attributes by ``x.name``, keys by ``x["name"]``."""

    names: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def attributes_read(cls: type, parameters: list[str]) -> dict[str, Attributes]:
    """Constructor's parameter → what the class reads from it, in its ``__init__`` or through the
    attribute of ``self`` that holds it. Parameters from which nothing is read are missing."""
    found = class_node(cls)
    if found is None:
        return {}
    holders = {name: {name, f"self.{name}"} for name in parameters}
    read: dict[str, Attributes] = {}
    for name in parameters:
        names = dict.fromkeys(_attributes(found[1], holders[name]))
        keys = dict.fromkeys(_keys(found[1], holders[name]))
        # A module or a tensor is told by what else happens to it.
        plain = tuple(item for item in names if item not in _OF_VALUES)
        if (plain and len(plain) == len(names)) or keys:
            read[name] = Attributes(plain, tuple(keys))
    return read


def _attributes(tree: ast.AST, holders: set[str]) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node.value) in holders:
            yield "get" if id(node) in called else node.attr


def _keys(tree: ast.AST, holders: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or dotted(node.value) not in holders:
            continue
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            yield node.slice.value
