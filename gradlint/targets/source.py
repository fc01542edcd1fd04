"""Places in the user's source that messages point to: where an op is defined, its methods, and
the expression that backward returns for one input.

Every function here gives ``(location, excerpt, related)`` and never raises: where source can't
be found, that is ``(None, None, [])``.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gradlint.model.op import Op
from gradlint.model.report import Excerpt, Location
from gradlint.targets._returns import returned_element
from gradlint.targets._static import FunctionNode
from gradlint.targets.nodes import class_node, function_node, method_node
from gradlint.targets.source_file import SourceFile, header, read_source

Place = tuple[Location | None, Excerpt | None, list[Location]]

_NOWHERE: Place = (None, None, [])

#: Lines from ``def`` to the underlined line that are all shown; else a part (heuristic).
_SHORT = 10

#: Lines shown before the underlined line where it is further down.
_CONTEXT = 2

#: Lines shown at most of an expression that spans many.
_LONGEST = 12

_F = TypeVar("_F", bound=Callable[..., Place])


def _safely(function: _F) -> _F:
    @functools.wraps(function)
    def safe(*args: Any, **kwargs: Any) -> Place:
        try:
            return function(*args, **kwargs)
        except Exception:
            # A message without a place is better than none.
            return None, None, []

    return safe  # type: ignore[return-value]


@_safely
def definition(op: Any) -> Place:
    """Where an op is defined: its ``class`` or ``def``.

    Args:
        op: an :class:`Op`, a class or a function.
    """
    thing = op.defining if isinstance(op, Op) else op
    if thing is None:
        return _given(op.location) if isinstance(op, Op) else _NOWHERE
    if hasattr(thing, "gradlint_places"):
        return _given(thing.gradlint_places.get("forward"))
    found = class_node(thing) if isinstance(thing, type) else function_node(thing)
    if found is None:
        return _NOWHERE
    source, node = found
    return _header_place(source, node)


@_safely
def method(op_or_class: Any, name: str) -> Place:
    """Where ``forward``, ``backward`` or ``setup_context`` of an op is defined, bases included.

    Args:
        op_or_class: an :class:`Op`, a ``torch.autograd.Function`` or ``nn.Module`` class, or a
            plain function (which is its own forward).
        name: the method's name; ``backward`` also finds a ``vjp``.
    """
    thing = op_or_class
    if isinstance(thing, Op):
        if thing.function is not None:
            thing = thing.function
        elif thing.module is not None:
            thing = type(thing.module)
        else:
            thing = thing.defining
    if not isinstance(thing, type):
        found = function_node(thing) if name == "forward" and thing is not None else None
        return _header_place(*found) if found else _NOWHERE
    if hasattr(thing, "gradlint_places"):
        return _given(thing.gradlint_places.get(name))
    names = ("backward", "vjp") if name == "backward" else (name,)
    held = method_node(thing, *names)
    return _header_place(held[0], held[1]) if held else _NOWHERE


@_safely
def returned_gradient(
    function_class: type, position: int, line: int | None = None, label: str = ""
) -> Place:
    """The expression that backward returns at ``position``.

    Args:
        function_class: the ``torch.autograd.Function`` class.
        position: index of the gradient among forward's arguments. A position that the source
            does not show (too few gradients, a starred element, a negative index) gives the
            whole returned expression.
        line: line of the ``return`` that was executed, where known; default the last.
        label: what the excerpt says after the underlined expression.

    Returns:
        Location and excerpt of the expression. Where it is a bare name, ``related`` holds the
        statements that computed it, in the order of their lines, and the excerpt shows them.
    """
    if hasattr(function_class, "gradlint_places"):
        places = function_class.gradlint_places
        return _given(places.get(position, places.get("backward")), label)
    found = method_node(function_class, "backward", "vjp")
    if found is None:
        return _NOWHERE
    source, node, _ = found
    returned = returned_element(node, position, line)
    if returned is None:
        return _header_place(source, node, label)
    element, statements = returned
    place = source.span(element)
    related = [source.span(statement) for statement in statements]
    first = place.line
    last = min(place.end_line or first, first + _LONGEST - 1)
    shown = set(range(first, last + 1))
    if last - node.lineno < _SHORT:
        shown |= set(range(node.lineno, last + 1))
    else:
        shown |= set(range(max(node.lineno, first - _CONTEXT), first))
    for span in related:
        end = min(span.end_line or span.line, span.line + _CONTEXT)
        shown |= set(range(span.line, end + 1))
    return place, _excerpt(source, shown, label), related


def _given(place: Location | None, label: str = "") -> Place:
    """A place that is known already: formulas of a spec know their line."""
    source = None if place is None else read_source(place.file)
    if place is None or source is None:
        return place, None, []
    last = min(place.end_line or place.line, place.line + _LONGEST - 1)
    return place, _excerpt(source, range(place.line, last + 1), label), []


def _header_place(
    source: SourceFile, node: ast.ClassDef | FunctionNode | ast.Lambda, label: str = ""
) -> Place:
    place = source.span(node) if isinstance(node, ast.Lambda) else header(source, node)
    return place, _excerpt(source, [place.line], label), []


def _excerpt(source: SourceFile, numbers: Iterable[int], label: str) -> Excerpt:
    return Excerpt(tuple((number, source.line(number)) for number in sorted(numbers)), label)
