"""The strings that a class compares the arguments of its constructor with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from gradlint.targets.nodes import class_node
from gradlint.targets.signature import signature_of
from gradlint.targets.source_file import dotted


def compared_strings(cls: type, names: Sequence[str]) -> dict[str, list[str]]:
    """Argument of the constructor → the strings that it may be, in the order of the source: those
    of its annotation ``Literal``, those that it, or the attribute of ``self`` of its name, is
    compared with, and the keys of a table beside the class in which it is looked up. Arguments
    without such strings are missing."""
    signature = signature_of(cls)
    parameters = signature.parameters if signature is not None else {}
    found: dict[str, list[str]] = {}
    for name in names:
        annotation = parameters[name].annotation if name in parameters else None
        if get_origin(annotation) is Literal:
            found[name] = [value for value in get_args(annotation) if isinstance(value, str)]
    node = class_node(cls)
    if node is None:
        return found
    beside = getattr(getattr(cls, "__init__", None), "__globals__", {})
    holders = {f"{owner}{name}": name for name in names for owner in ("", "self.", "self._")}
    for comparison in ast.walk(node[1]):
        if isinstance(comparison, ast.Compare):
            sides = [comparison.left, *comparison.comparators]
            for name in filter(None, (holders.get(dotted(side)) for side in sides)):
                found.setdefault(name, []).extend([*_strings(sides), *_in_tables(sides, beside)])
        elif isinstance(comparison, ast.Subscript) and dotted(comparison.slice) in holders:
            keys = _in_tables([comparison.value], beside)
            found.setdefault(holders[dotted(comparison.slice)], []).extend(keys)
        elif isinstance(comparison, ast.Match) and dotted(comparison.subject) in holders:
            cases = (part for case in comparison.cases for part in ast.walk(case.pattern))
            values = [part.value for part in cases if isinstance(part, ast.MatchValue)]
            found.setdefault(holders[dotted(comparison.subject)], []).extend(_strings(values))
    return {name: list(dict.fromkeys(values)) for name, values in found.items() if values}


def _strings(expressions: Sequence[ast.expr]) -> Iterator[str]:
    """String constants among ``expressions``, also those in tuples, lists and sets."""
    for expression in expressions:
        if isinstance(expression, (ast.Tuple, ast.List, ast.Set)):
            yield from _strings(expression.elts)
        elif isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            yield expression.value


def _in_tables(expressions: Sequence[ast.expr], beside: Mapping[str, Any]) -> Iterator[str]:
    """The strings in collections, or keys of tables, that ``expressions`` name among ``beside``."""
    for expression in expressions:
        table = beside.get(expression.id) if isinstance(expression, ast.Name) else None
        if isinstance(table, (dict, list, tuple, set, frozenset)):
            keys = [key for key in table if isinstance(key, str)]
            yield from sorted(keys) if isinstance(table, (set, frozenset)) else keys
