"""What forward of a Function saves for backward and autograd takes for a constant.

Inside a Function's forward nothing is recorded. A saved input or output is connected to its graph
again when backward reads it; anything else that forward computed is a plain number then, and a
second derivative lacks the part that goes through it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import dense
from gradlint.targets.nodes import method_node
from gradlint.trace.graph import python_nodes, saved_by
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: By how much an input moves, in parts of one and of its size, to see what depends on it (any step
#: that is far above rounding, and too small for another branch, will do).
STEP = 1e-3

#: The cause where a value that forward computed and saved lacks a graph in backward.
SAVED = "saved-without-graph"

#: Names of such values that are shown, at most.
MOST_SHOWN = 3

_POSITION = re.compile(r"saved_tensors\[(\d+)\]")

#: The name, the value and whether it is connected to a graph.
_Saved = tuple[str, torch.Tensor, bool]


def saved_without_graph(subject: Subject, position: int) -> Cause | None:
    """What forward saved for backward and autograd takes for a constant, as the cause of a wrong or
    lost second derivative where backward is right; None where nothing of that kind depends on the
    value with respect to which it was taken. Two forward calls.

    Args:
        position: of that value, among the differentiable inputs and the grad_outputs behind them.
    """
    if position >= len(subject.problem.inputs):
        return None
    saved = _constants(subject.problem, position)
    if not saved:
        return None
    name = subject.problem.inputs[position].name
    shown = ", ".join(f"`{item}`" for item in saved[:MOST_SHOWN])
    counts, it = (
        ("counts as a constant", "it") if len(saved) == 1 else ("count as constants", "them")
    )
    return Cause(
        SAVED,
        f"{SAVED}: backward uses {shown}, which forward computes from `{name}`. Autograd records "
        "nothing of what happens inside of a Function's forward: when backward is differentiated, "
        f"{shown} {counts}, and what comes through {it} is missing in the second derivative",
        f"compute {shown} again in backward, from the saved inputs; or return {it} from forward as "
        "a further output, and save that: only inputs and outputs keep their graph. "
        "@once_differentiable refuses second derivatives openly",
    )


def _constants(problem: Problem, position: int) -> list[str]:
    """The values that depend on an input, and that backward gets without a graph to it, by their
    names in backward; empty where there are none, or no Python Function is involved."""
    point = problem.values()
    moved = list(point)
    value = point[position]
    if not value.is_floating_point() and not value.is_complex():
        return []
    moved[position] = value + STEP * (1.0 + value.abs()).to(value.dtype)
    try:
        here, there = _saved(problem, point), _saved(problem, moved)
    except OpRaised:
        return []
    if [name for name, *_ in here] != [name for name, *_ in there]:
        return []
    found = [
        name
        for (name, one, connected), (_, other, _) in zip(here, there, strict=True)
        if not connected and one.shape == other.shape and not torch.equal(one, other)
    ]
    return list(dict.fromkeys(found))


def _saved(problem: Problem, values: Sequence[torch.Tensor]) -> list[_Saved]:
    """What the user's Functions save at ``values``, node by node."""
    _, outputs = problem.linearize(values)
    found = []
    for node in python_nodes([item.value for item in outputs]):
        names = _unpacked(node._forward_cls)
        for name, tensor in saved_by(node):
            if tensor.is_floating_point() or tensor.is_complex():
                plain = dense(tensor.detach()).clone()
                found.append((_in_backward(name, names), plain, tensor.requires_grad))
    return found


def _in_backward(name: str, unpacked: Sequence[str]) -> str:
    """The name in backward of what a node calls ``name``."""
    position = _POSITION.fullmatch(name)
    if position is None:
        return name
    place = int(position.group(1))
    return unpacked[place] if place < len(unpacked) else f"ctx.{name}"


def _unpacked(function: type) -> list[str]:
    """The names to which backward assigns ``ctx.saved_tensors``; empty where it does not."""
    try:
        known = method_node(function, "backward", "vjp")
    except Exception:  # sources can be anything
        return []
    for node in ast.walk(known[1]) if known is not None else ():
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "saved_tensors"
            and isinstance(node.targets[0], (ast.Tuple, ast.List))
        ):
            targets = node.targets[0].elts
            if all(isinstance(item, ast.Name) for item in targets):
                return [item.id for item in targets if isinstance(item, ast.Name)]
    return []
