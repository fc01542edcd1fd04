"""One instrumented run: what backward really returned, before the engine sums, casts or rejects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from gradlint.trace._problem import OpRaised, Output, Problem


@dataclass
class NodeRun:
    """One call of a Python Function's backward inside the run.

    Args:
        function: the ``torch.autograd.Function`` class.
        grad_outputs: what backward received.
        returned: exactly what the user's backward returned, or None if it raised.
        raised: what it raised, if it did.
        line: line in the source file of the ``return`` that was executed, if known.
        needs_input_grad: ``ctx.needs_input_grad``.
        is_tensor: for every forward argument, whether it was a tensor.
        arguments: names of forward's arguments, without ``ctx``.
    """

    function: type
    grad_outputs: tuple[Any, ...] = ()
    returned: Any = None
    raised: BaseException | None = None
    line: int | None = None
    needs_input_grad: tuple[bool, ...] = ()
    is_tensor: tuple[bool, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass
class RunRecord:
    """One forward and one backward with random cotangents, recorded.

    Args:
        outputs: what forward returned (empty if it raised).
        cotangents: output name → cotangent used.
        gradients: what the engine delivered for each differentiable input, or None if it raised.
        nodes: every Python Function backward that ran, in order; for an op of kind "function"
            the op's own is ``own``.
        error: what the op or the engine raised, if anything.
        saved: tensors saved for backward, as (name, tensor).
    """

    outputs: list[Output] = field(default_factory=list)
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: list[torch.Tensor | None] | None = None
    nodes: list[NodeRun] = field(default_factory=list)
    own: NodeRun | None = None
    error: OpRaised | None = None
    saved: list[tuple[str, torch.Tensor]] = field(default_factory=list)


def record(problem: Problem) -> RunRecord:
    """Run ``problem`` once, watching the boundary between the user's backward and the engine."""
    raise AssertionError("written by the trace helper")
