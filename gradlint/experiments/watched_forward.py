"""One forward call under a mode that watches what it does."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


def watch_forward(
    subject: Subject,
    watched: DispatchMode,
    problem: Problem | None = None,
    values: Sequence[torch.Tensor] | None = None,
) -> bool:
    """Call forward once under ``watched``; the call counts for ``subject``.

    Args:
        problem: the op on the sample that is meant; default the subject's own.
        values: of its inputs; default those of the sample.

    Returns:
        Whether forward came to its end.
    """
    run = (problem or subject.problem).through(lambda invoke: invoke)
    run.surroundings = lambda: watched
    try:
        run.forward(values)
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += run.forward_calls
    return True
