"""What backward really returned, argument by argument, for the rules GL1, GL2 and GL3."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gradlint.diagnosis.engine_errors import Explanation, explain
from gradlint.experiments.gradient_place import Place
from gradlint.experiments.subject import Subject
from gradlint.targets import source
from gradlint.trace.applied import NodeRun, TensorMeta

#: Note of rules that have nothing to judge.
BACKWARD_NOT_SEEN = "no backward of a Function ran: its return values are unknown"


@dataclass(frozen=True)
class ReturnedGradient:
    """One value that a backward returned.

    Args:
        node: the call of backward.
        position: index into the returned tuple, and into forward's arguments.
        name: forward's name of the argument, with the Function in front where it is not the op
            itself; ``surplus`` values have none.
        value: what was returned.
        meta: shape, dtype and device of the argument, where it is a tensor and was seen.
        is_tensor: whether the argument is a tensor.
        needed: whether the argument needs a gradient.
    """

    node: NodeRun
    position: int
    name: str
    value: Any
    meta: TensorMeta | None
    is_tensor: bool
    needed: bool


def returned_tuple(node: NodeRun) -> tuple[Any, ...] | None:
    """The return value as a tuple, as the engine takes it. None if backward did not return."""
    if node.raised is not None:
        return None
    return node.returned if isinstance(node.returned, tuple) else (node.returned,)


def finished_nodes(subject: Subject) -> list[NodeRun]:
    """The recorded backwards, of Python and C++, that returned: one per Function and shapes."""
    seen: set[tuple[Any, ...]] = set()
    nodes = []
    for node in [*subject.run.nodes, *subject.run.native]:
        key = (node.function, node.needs_input_grad, node.metas)
        if node.raised is None and key not in seen:
            seen.add(key)
            nodes.append(node)
    return nodes


def returned_gradients(subject: Subject) -> list[ReturnedGradient]:
    """Every value that a finished backward returned for an argument of its forward."""
    result = []
    for node in finished_nodes(subject):
        values = returned_tuple(node) or ()
        for position, value in enumerate(values[: len(node.needs_input_grad)]):
            result.append(
                ReturnedGradient(
                    node,
                    position,
                    argument_name(subject, node, position),
                    value,
                    node.metas[position],
                    node.is_tensor[position],
                    node.needs_input_grad[position],
                )
            )
    return result


def argument_name(subject: Subject, node: NodeRun, position: int) -> str:
    """``weight``, or ``weight of MyFunction`` for a Function inside of the op."""
    name = node.arguments[position] if position < len(node.arguments) else f"args[{position}]"
    if node.function is subject.op.function or subject.op.kind == "library":
        return name
    return f"{name} of {node.function.__name__}"


def returned_place(item: ReturnedGradient) -> Place | None:
    """The expression that was returned for the argument, or None where there is no source."""
    return position_place(item.node, item.position, f"returned for `{item.name}`")


def position_place(node: NodeRun, position: int, label: str) -> Place | None:
    """The ``position``-th element of the tuple that ``node`` returned, or its backward."""
    place = source.returned_gradient(node.function, position, node.line, label)
    return place if place[0] is not None else None


def backward_place(node: NodeRun, *, whole: bool = False) -> Place | None:
    """The definition of backward; with ``whole`` the executed ``return``, where it is known."""
    if whole:
        # A position outside every tuple stands for the whole returned expression.
        place = source.returned_gradient(node.function, -1, node.line, "returned")
        if place[0] is not None:
            return place
    place = source.method(node.function, "backward")
    return place if place[0] is not None else None


def rejection(subject: Subject, *slugs: str) -> Explanation | None:
    """The engine's rejection of a returned gradient, where its slug is one of ``slugs``."""
    error = subject.run.error
    if error is None or error.phase != "backward":
        return None
    if any(node.raised is not None for node in subject.run.nodes):
        return None
    found = explain(error.error)
    return found if found is not None and found.slug in slugs else None


def function_in(text: str, default: str) -> str:
    """The name of the node that an engine error names: ``function XBackward returned …``."""
    found = re.search(r"[Ff]unction (\S+) returned", text)
    return found.group(1).removesuffix("Backward") if found else default
