"""One forward, several backwards: what an op returns for one cotangent after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem
from gradlint.trace.random import common_random_numbers


@dataclass
class Trial:
    """The gradients of one pull, or what was raised instead."""

    gradients: list[torch.Tensor | None] = field(default_factory=list)
    error: OpRaised | None = None


class Replay:
    """The graph of one forward at the sample, through which cotangents are pulled.

    The graph is kept for all pulls, until one raises. A disagreement is to be confirmed under
    ``fresh=True``, where every pull has a forward of its own: an op may free or spoil its own
    graph, which is another defect.
    """

    def __init__(self, problem: Problem, *, fresh: bool = False) -> None:
        self.problem = problem
        self._fresh = fresh
        self._kept: tuple[list[torch.Tensor], list[Output]] | None = None

    @property
    def outputs(self) -> list[Output]:
        """The differentiable outputs, in order."""
        return self._graph()[1]

    def pull(self, cotangents: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Gradients of every input, detached; random numbers are the same in every call.

        Args:
            cotangents: one for each differentiable output; None leaves its gradient undefined.

        Raises:
            OpRaised: when backward raises.
        """
        try:
            return self._pull(cotangents)
        except OpRaised:
            if self._fresh:
                raise
            self._fresh = True
            return self._pull(cotangents)

    def trial(self, cotangents: Sequence[torch.Tensor | None]) -> Trial:
        """:meth:`pull`, with an exception as a result of its own."""
        try:
            return Trial(self.pull(cotangents))
        except OpRaised as raised:
            return Trial(error=raised)

    def _pull(self, cotangents: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        leaves, outputs = self._graph()
        chosen = [
            (item.value, v) for item, v in zip(outputs, cotangents, strict=True) if v is not None
        ]
        if not chosen:
            end = _undefined([item.value for item in outputs])
            chosen = [(end, torch.ones_like(end))]
        with common_random_numbers(self.problem.seed):
            found = self.problem.backward(
                [value for value, _ in chosen],
                leaves,
                [v for _, v in chosen],
                retain_graph=not self._fresh,
            )
        return [None if grad is None else grad.detach() for grad in found]

    def _graph(self) -> tuple[list[torch.Tensor], list[Output]]:
        if self._kept is None or self._fresh:
            leaves, outputs = self.problem.linearize()
            self._kept = leaves, [item for item in outputs if item.differentiable]
        return self._kept


def _undefined(values: Sequence[torch.Tensor]) -> torch.Tensor:
    """A scalar connected to ``values`` whose gradient towards each of them is undefined."""
    count = len(values)

    class Undefined(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):  # type: ignore[no-untyped-def]
            return torch.zeros((), dtype=torch.float64, device=tensors[0].device)

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return (None,) * count

    end: torch.Tensor = Undefined.apply(*values)
    return end
