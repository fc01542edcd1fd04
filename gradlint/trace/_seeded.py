"""Random numbers that leave no trace in the generators' states."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradlint.trace._problem import Problem, draws_random_numbers


class _SeededCalls(TorchDispatchMode):
    """Notes whether PyTorch's operators draw random numbers in the body."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.seen = self.seen or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def draws(problem: Problem) -> bool:
    """Whether forward draws random numbers, also where it forks generators, or seeds them, and puts
    them back."""
    if draws_random_numbers(problem):
        return True
    with _SeededCalls() as calls:
        problem.forward()
    return calls.seen
