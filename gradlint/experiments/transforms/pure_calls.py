"""An op as a pure function of its differentiable inputs, for ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gradlint.experiments.subject import Subject
from gradlint.trace.op_io import OpRaised

Pure = Callable[..., "tuple[torch.Tensor, ...]"]


def differentiable_names(subject: Subject) -> list[str]:
    """Names of the outputs that have a cotangent."""
    return [item.name for item in subject.run.outputs if item.name in subject.run.cotangents]


def pure_function(subject: Subject) -> Pure:
    """Differentiable inputs ↦ differentiable outputs; everything else is held fixed."""
    problem, names = subject.problem, differentiable_names(subject)

    def call(*passed: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = {item.name: item.value for item in problem.connect(passed)}
        if not set(names) <= set(found):
            raise OpRaised("forward", RuntimeError("other outputs are returned"))
        return tuple(found[name] for name in names)

    return call


def directions(subject: Subject) -> tuple[torch.Tensor, ...]:
    """Cotangents of the gradients."""
    generator = torch.Generator().manual_seed(subject.seed + 1)
    return tuple(
        torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value)
        for value in subject.problem.values()
    )


def plain_second_derivatives(
    subject: Subject, ws: tuple[torch.Tensor, ...]
) -> tuple[list[torch.Tensor | None] | None, str]:
    """Second derivatives by plain autograd; None, and why, where there are none to compare."""
    if min(subject.settings.order, subject.op.order or 2) < 2:
        return None, "first derivatives only"
    problem = subject.problem
    try:
        leaves, outputs = problem.linearize()
        first = problem.pull_from(outputs, leaves, subject.run.cotangents, create_graph=True)
        pairs = [(g, w) for g, w in zip(first, ws, strict=True) if g is not None]
        pairs = [(g, w) for g, w in pairs if g.requires_grad]
        if not pairs:
            return None, "no second derivative"
        return problem.backward([g for g, _ in pairs], leaves, [w for _, w in pairs]), ""
    except OpRaised as raised:
        name = type(raised.error).__name__
        return None, f"first derivatives only: differentiating twice raises {name}"
