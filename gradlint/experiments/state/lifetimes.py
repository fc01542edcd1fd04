"""What outlives a call: nodes that survive their outputs, and tensors that survive a backward."""

from __future__ import annotations

import gc
import re
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.trace.graph import held_tensors, memory_owner, python_nodes
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: What ``save_for_backward`` was given, in the context of another Function on ``ctx``.
_SAVED_INSIDE = re.compile(r"\.\w.*\.(saved_tensors|to_save)\b")


@dataclass(frozen=True)
class HeldTensor:
    """A tensor in an attribute of ``ctx`` after a backward that frees what was saved.

    Args:
        attribute: such as ``ctx.x``.
        kin: "input", "argument", "output" or "intermediate".
        name: of the argument or output in whose memory it lies; else "".
        shape: its shape; size: of its storage in bytes.
        numel: its elements.
        function: the Function of the node.
    """

    attribute: str
    kin: str
    name: str
    shape: list[int]
    size: int
    numel: int
    function: Any

    @property
    def saved_inside(self) -> bool:
        """Whether a Function that this one calls saved it in a context of its own."""
        return _SAVED_INSIDE.search(self.attribute) is not None


@dataclass
class Lifetime:
    """One forward and one backward, after which everything that the caller held was released.

    Args:
        seen: whether a Python Function's node was there to be watched.
        held: tensors held by nodes after backward.
        survived: names of the nodes alive after outputs and inputs were deleted.
        gradients: of that backward.
    """

    seen: bool = False
    held: list[HeldTensor] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    gradients: list[torch.Tensor | None] = field(default_factory=list)


class _Token:
    """Lives as long as the node that holds it."""


def make_lifetime(subject: Subject) -> Lifetime | None:
    """What outlives a call of the op; None where it raised."""
    return measure_lifetime(subject.problem, subject.run.cotangents)


def measure_lifetime(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Lifetime | None:
    """Call, differentiate, forget; reference counts alone must free the graph.

    Args:
        cotangents: output name → cotangent, for the differentiable outputs.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        found, tokens = _call_and_forget(problem, cotangents)
        found.survived = [name for name, token in tokens if token() is not None]
    except OpRaised:
        return None
    finally:
        if collected:
            gc.enable()
    return found


def _call_and_forget(
    problem: Problem, cotangents: dict[str, torch.Tensor]
) -> tuple[Lifetime, list[tuple[str, weakref.ref[_Token]]]]:
    """The call and the backward; on return nothing here refers to the graph."""
    found = Lifetime()
    tokens = []
    with problem.handing_over() as handed:
        leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.name in cotangents and item.differentiable]
    nodes = python_nodes([item.value for item in chosen])
    ends = [item.value.grad_fn for item in chosen]
    for node in {id(node): node for node in (*nodes, *ends) if node is not None}.values():
        token = _Token()
        node.metadata["gradlint"] = token
        tokens.append((node.name(), weakref.ref(token)))
    gradients = problem.backward(chosen, leaves, [cotangents[item.name] for item in chosen])
    found.gradients = [None if g is None else g.detach().clone() for g in gradients]
    named = [(item.name, item.value) for item in outputs]
    found.seen = bool(nodes)
    for node in nodes:
        for attribute, tensor in held_tensors(node):
            kin, name = memory_owner(tensor, handed, named)
            found.held.append(
                HeldTensor(
                    attribute,
                    kin,
                    name,
                    list(tensor.shape),
                    _bytes(tensor),
                    tensor.numel(),
                    node._forward_cls,
                )
            )
    return found, tokens


def _bytes(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):  # sparse tensors, subclasses without storage
        return tensor.numel() * tensor.element_size()
