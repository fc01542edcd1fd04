"""Where backward cuts the graph, as far as its source tells."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.report import Location
    from gradlint.rules._place import Place
    from gradlint.rules._subject import Subject

#: Names whose use in backward leaves results without a graph.
CUTS = frozenset({"no_grad", "inference_mode", "detach", "data", "numpy", "item", "tolist"})


def graph_cuts(function: type | None) -> list[Location]:
    """Places in the backward of ``function`` that use one of :data:`CUTS`; empty if none is seen
    or the source can't be had."""
    from gradlint.targets._nodes import method_node

    if function is None:
        return []
    try:
        found = method_node(function, "backward") or method_node(function, "vjp")
    except Exception:  # sources can be anything
        return []
    if found is None:
        return []
    source, method, _ = found
    return [
        source.span(node)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr in CUTS
    ]


def second_order_place(subject: Subject, position: int) -> Place | None:
    """Where backward returns the gradient whose derivative is at fault, with the places that cut
    the graph as related ones; None for ops without a Python backward.

    Args:
        position: of the input, among the differentiable ones, whose gradient is meant.
    """
    from gradlint.rules._place import gradient_place

    if subject.op.function is None:
        return None
    location, excerpt, related = gradient_place(subject, subject.problem.inputs[position])
    return location, excerpt, [*related, *graph_cuts(subject.op.function)]
