"""An op as a pure function of its differentiable inputs, for ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject

Pure = Callable[..., "tuple[torch.Tensor, ...]"]


def differentiable_names(subject: Subject) -> list[str]:
    """Names of the outputs that have a cotangent."""
    return [item.name for item in subject.run.outputs if item.name in subject.run.cotangents]


def pure(subject: Subject) -> Pure:
    """Differentiable inputs ↦ differentiable outputs; everything else is held fixed."""
    problem, names = subject.problem, differentiable_names(subject)

    def call(*passed: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = {item.name: item.value for item in problem.connect(passed)}
        if not set(names) <= set(found):
            raise OpRaised("forward", RuntimeError("other outputs are returned"))
        return tuple(found[name] for name in names)

    return call


def unfit(subject: Subject) -> str:
    """Why ``torch.func`` can't be tried on the sample, in words; else ""."""
    from gradlint.rules._blocked import blocked

    reason = blocked(subject)
    if reason:
        return reason
    if not subject.problem.inputs:
        return "no input requires grad"
    if not subject.run.cotangents:
        return "no output is differentiable"
    if subject.problem.has_sparse_inputs or any(o.value.is_nested for o in subject.run.outputs):
        return "sparse and nested tensors are not looked at"
    if subject.baseline is None:
        return "backward raises when called again"
    return ""
