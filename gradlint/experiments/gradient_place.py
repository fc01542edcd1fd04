"""Where in the source a wrong gradient is returned."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.report import Excerpt, Location
from gradlint.targets import source
from gradlint.targets.nodes import code_of
from gradlint.trace.applied import NodeRun, forward_signature
from gradlint.trace.graph import of_the_user
from gradlint.trace.op_io import Input

Place = tuple["Location | None", "Excerpt | None", "list[Location]"]

#: How many functions deep the Functions of compiled code are looked for: the compiled function, and
#: what it calls by name.
_DEPTH = 3


def gradient_place(subject: Subject, item: Input) -> Place:
    """The expression returned for ``item``, or where backward or the op is defined.

    In a module or a function that calls Functions, that is the backward that received ``item``
    itself; where none did, the one that ran last, which is the nearest to the inputs, with the
    others as related places.
    """
    function = subject.op.function
    if function is not None and item.position is not None:
        own = subject.run.own
        place = source.returned_gradient(
            function, item.position, own.line if own else None, f"returned for `{item.name}`"
        )
        if place[0] is not None:
            return place
    if function is None:
        place = _inner_place(subject, item)
        if place[0] is not None:
            return place
    if subject.run.own is not None and function is None:
        place = source.method(subject.run.own.function, "backward")
        if place[0] is not None:
            return place
    return source.definition(subject.op)


def _inner_place(subject: Subject, item: Input) -> Place:
    """The place in a backward that ran inside of an op that is no Function itself."""
    nodes = [node for node in subject.run.nodes if of_the_user(node.function)]
    index = next((k for k, one in enumerate(subject.problem.inputs) if one is item), None)
    direct = [node for node in nodes if index is not None and index in node.leaves]
    label = f"returned for `{item.name}`"
    if direct:
        node = direct[-1]
        return source.returned_gradient(
            node.function, node.leaves.index(index), node.line, _label(subject, node, label)
        )
    functions = list(dict.fromkeys(node.function for node in nodes))
    if not functions:
        functions = list(dict.fromkeys(_functions_called(_callable(subject), _DEPTH)))
        return _compiled_place(functions, item, label)
    last = nodes[-1]
    location, excerpt, related = _backward(last)
    behind = [source.method(one, "backward")[0] for one in functions if one is not last.function]
    return location, excerpt, [*related, *(place for place in behind if place is not None)]


def _label(subject: Subject, node: NodeRun, label: str) -> str:
    """``label``, with the Function where the op has more than one."""
    functions = {one.function for one in subject.run.nodes}
    return f"{label} by {node.function.__name__}" if len(functions) > 1 else label


def _backward(node: NodeRun) -> Place:
    """The gradient that ``node`` returned for the one argument that is computed from the inputs and
    not an input itself; its backward where there are more."""
    pairs = zip(node.needs_input_grad, node.leaves, strict=True)
    wanted = [k for k, (needed, leaf) in enumerate(pairs) if needed and leaf is None]
    if len(wanted) == 1:
        place = source.returned_gradient(node.function, wanted[0], node.line, "returned here")
        if place[0] is not None:
            return place
    return source.method(node.function, "backward")


def _compiled_place(functions: list[Any], item: Input, label: str) -> Place:
    """Where compiled code ran the backward of one of ``functions``: the one that has a parameter of
    ``item``'s name, if any does."""
    for function in functions:
        signature = forward_signature(function)
        names = list(signature.parameters) if signature else []
        if item.name in names:
            return source.returned_gradient(function, names.index(item.name), None, label)
    return source.method(functions[0], "backward") if functions else (None, None, [])


def _callable(subject: Subject) -> Any:
    thing = subject.op.defining
    return getattr(thing, "forward", None) if inspect.isclass(thing) else thing


def _functions_called(function: Any, depth: int) -> Iterator[Any]:
    """The Function classes that ``function`` names in its code, or that functions do which it
    names."""
    code = code_of(function)
    if code is None or depth == 0:
        return
    inner = inspect.unwrap(function)
    known = getattr(inner, "__globals__", {})
    for name in code.co_names:
        thing = known.get(name)
        thing = getattr(thing, "__self__", thing)  # apply = MyFunction.apply
        if isinstance(thing, type) and issubclass(thing, torch.autograd.Function):
            yield thing
        elif inspect.isfunction(thing) and thing.__module__ == inner.__module__:
            yield from _functions_called(thing, depth - 1)


def returned_expression(place: Place) -> str:
    """The text under the carets of ``place`` where it is one line; else ""."""
    location, excerpt, _ = place
    if location is None or excerpt is None or not excerpt.label.startswith("returned"):
        return ""
    if location.end_column is None or location.end_line not in (None, location.line):
        return ""
    text = dict(excerpt.lines).get(location.line, "")
    return text[location.column - 1 : location.end_column - 1]
