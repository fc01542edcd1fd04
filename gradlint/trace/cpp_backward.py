"""Find out what the backward of a C++ ``torch::autograd::Function`` really returned.

A node made in C++ cannot be wrapped in Python, and its hooks see gradients only after the engine
has cast, summed or rejected them. But the node can be called: a pre-hook notes the gradients that
it receives, and after the run it is called again with the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradlint.model.report import Location
from gradlint.targets.source_file import read_source, shown_path
from gradlint.trace.applied import NodeRun, TensorMeta
from gradlint.trace.graph import nodes_above
from gradlint.trace.problem import Problem
from gradlint.trace.random import common_random_numbers

#: Name of the node of a ``torch::autograd::Function<T>``: the demangled type, from which the class
#: without its namespace and template arguments is taken.
_NAME = re.compile(r"^torch::autograd::CppNode<(?:[^<]*::)?(?P<class>\w+)")


def function_places(name: str, sources: Sequence[str]) -> dict[str, Location]:
    """Places of ``forward`` and ``backward`` of the C++ class ``name``; empty if it is not found.

    Args:
        name: name of the class, without namespaces and template arguments.
        sources: paths of C++ and CUDA files.
    """
    head = re.compile(rf"\b(?:struct|class)\s+{re.escape(name)}\b[^;{{]*\{{")
    for path in sources:
        source = read_source(path)
        text = "\n".join(source.lines) if source is not None else ""
        found = head.search(text)
        if found is None:
            continue
        made = {}
        for method in ("forward", "backward"):
            line = re.compile(rf"^.*\b{method}\s*\(.*$", re.MULTILINE).search(text, found.end())
            if line is not None:
                made[method] = _line(path, text, line.start(), line[0])
        return made
    return {}


def _line(path: str, text: str, start: int, line: str) -> Location:
    line = line.rstrip("{ \t")
    number = text.count("\n", 0, start) + 1
    column = len(line) - len(line.lstrip()) + 1
    return Location(shown_path(path), number, column, number, len(line) + 1)


class Native:
    """Base of the classes that represent C++ Functions, which have no Python class."""


def class_of(name: str) -> str | None:
    """``Square`` for ``torch::autograd::CppNode<(anonymous namespace)::Square<int> >``; None for
    nodes of other kinds."""
    found = _NAME.match(name)
    return found["class"] if found else None


def native_nodes(outputs: Sequence[torch.Tensor]) -> list[Any]:
    """The nodes of C++ Functions above ``outputs``, each once."""
    return [node for node in nodes_above(outputs) if class_of(node.name()) is not None]


@contextmanager
def listening(nodes: Sequence[Any]) -> Iterator[list[tuple[Any, tuple[Any, ...]]]]:
    """In the body, note copies of the gradients that each of ``nodes`` receives."""
    given: list[tuple[Any, tuple[Any, ...]]] = []

    def hook(node: Any) -> Any:
        def note(grad_outputs: tuple[Any, ...]) -> None:
            copies = (None if g is None else g.detach().clone() for g in grad_outputs)
            given.append((node, tuple(copies)))

        return note

    handles = [node.register_prehook(hook(node)) for node in nodes]
    try:
        yield given
    finally:
        for handle in handles:
            handle.remove()


def called_again(
    problem: Problem,
    given: Sequence[tuple[Any, tuple[Any, ...]]],
    leaves: Sequence[torch.Tensor],
) -> list[NodeRun]:
    """Call each of the nodes once more with the gradients that it received.

    Args:
        problem: the op on its sample; its random numbers are the same as in the run.
        given: nodes and the gradients that they received, from :func:`listening`.
        leaves: the leaves that represent the inputs of ``problem``.
    """
    slots = {id(leaf): index for index, leaf in enumerate(leaves)}
    runs = []
    for node, grad_outputs in given:
        entry = _entry(problem, node, slots, alone=len(given) == 1)
        entry.grad_outputs = grad_outputs
        runs.append(entry)
        try:
            with torch.no_grad(), common_random_numbers(problem.seed):
                found = node(*grad_outputs)
            entry.returned = found if isinstance(found, tuple) else (found,)
        except Exception as error:
            entry.raised = error
    return runs


def _entry(problem: Problem, node: Any, slots: dict[int, int], *, alone: bool) -> NodeRun:
    leaves: list[int | None] = []
    metas: list[TensorMeta | None] = []
    for parent, number in node.next_functions:
        variable = getattr(parent, "variable", None)
        leaves.append(slots.get(id(variable)))
        metas.append(_meta(parent, number, variable))
    names = _tensor_names(problem) if alone else []
    name = class_of(node.name()) or "Function"
    places = function_places(name, problem.op.sources)
    function = type(name, (Native,), {"gradlint_places": places})
    return NodeRun(
        function,
        needs_input_grad=tuple(parent is not None for parent, _ in node.next_functions),
        is_tensor=(True,) * len(leaves),
        arguments=tuple(
            problem.inputs[leaf].name
            if leaf is not None
            else names[index]
            if len(names) == len(leaves)
            else f"tensor {index + 1}"
            for index, leaf in enumerate(leaves)
        ),
        metas=tuple(metas),
        leaves=tuple(leaves),
    )


def _meta(parent: Any, number: int, variable: Any) -> TensorMeta | None:
    """What the engine expects for an edge: that of the leaf, or the metadata of the next node."""
    if variable is not None:
        return TensorMeta(tuple(variable.shape), variable.dtype, variable.device, True)
    known = getattr(parent, "_input_metadata", ())
    if parent is None or number >= len(known):
        return None
    said = known[number]
    return TensorMeta(tuple(said.shape), said.dtype, said.device, True)


def _tensor_names(problem: Problem) -> list[str]:
    """Names of the sample's tensors, in order."""
    return [name for name, _ in problem.sample.named_tensors(problem.op.signature)]
