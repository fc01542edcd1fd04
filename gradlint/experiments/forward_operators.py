"""Which operators of PyTorch a forward calls."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from gradlint.experiments.subject import Subject
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.problem import Problem, draws_random_numbers

#: Operators of PyTorch in one forward beyond which an op is not traced unasked (heuristic: forward
#: and backward take about 3 ms each to compile).
MOST_OPERATORS = 100

_counts: WeakKeyDictionary[Subject, int] = WeakKeyDictionary()


class _OperatorCounter(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.random = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        self.random = self.random or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def why_not_traced(subject: Subject, code: str) -> str:
    """Why the op is not traced unless the rule ``code`` is selected by its code; else ""."""
    if code in (subject.settings.select or ()):
        return ""
    if subject not in _counts:
        _counts[subject] = _watched(subject.problem).count
    count = _counts[subject]
    if count <= MOST_OPERATORS:
        return ""
    return f"forward calls {count} operators, which take long to trace: --select {code} runs it"


def is_random(problem: Problem) -> bool:
    """Whether forward draws random numbers, also where it forks generators, or seeds them, and puts
    them back."""
    return draws_random_numbers(problem) or _watched(problem).random


def _watched(problem: Problem) -> _OperatorCounter:
    with _OperatorCounter() as mode:
        problem.forward()
    return mode
