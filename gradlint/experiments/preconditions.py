"""Why later rules can't run on a subject, if they can't."""

from __future__ import annotations

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite


def blocked(subject: Subject) -> str:
    """A reason in words where forward or backward raised, or forward is not finite; else ""."""
    run = subject.run
    if run.error is not None:
        return f"{run.error.phase} raised"
    for output in run.outputs:
        value = output.value
        if output.differentiable and not all_finite(value):
            return f"`{output.name}` is not finite"
    return ""
