"""How often forward iterates: the calls that it makes of PyTorch's functions."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.base.clock import had_seconds
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem
from gradlint.trace.tightened import Tightened

#: Times as many calls that show more iterations, and no branch (heuristic).
MORE_CALLS = 1.5


def iterates_longer(problem: Problem, values: Sequence[torch.Tensor]) -> bool:
    """Whether forward makes many more calls at ``values`` than at those of ``problem``, as a loop
    does that ends when it converges, and does not converge there."""
    try:
        usual, _, _ = run_counted(problem, Tightened())
        calls, _, _ = run_counted(problem, Tightened(), values)
    except OpRaised:
        return False
    return calls > MORE_CALLS * usual


def run_counted(
    problem: Problem, mode: Tightened, values: Sequence[torch.Tensor] | None = None
) -> tuple[int, list[Output], float]:
    """The calls that forward makes under ``mode``, what it returns, and how long it takes."""
    watched = problem.through(lambda invoke: invoke)
    watched.put(dict(enumerate(problem.values() if values is None else values)))
    watched.surroundings, watched.patience = (lambda: mode), None
    started = had_seconds()
    outputs = watched.forward()
    return mode.calls, outputs, had_seconds() - started
