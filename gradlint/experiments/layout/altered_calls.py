"""What an altered call returned beside the baseline, and why nothing can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradlint.experiments.baseline_comparison import Baseline, Difference, make_baseline
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite
from gradlint.trace.op_io import OpRaised


@dataclass(frozen=True)
class Seen:
    """One altered call.

    Args:
        layout: how tensors lay in memory, a name of ``LAYOUTS``.
        differences: gradients that are not the baseline's.
        outputs: outputs that are not the baseline's.
        error: what it raised.
    """

    layout: str
    differences: list[Difference] = field(default_factory=list)
    outputs: list[Difference] = field(default_factory=list)
    error: OpRaised | None = None

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return self.error is None and not self.differences and not self.outputs


def unable(subject: Subject) -> str:
    """Why an op can't be compared with itself; "" where it can."""
    run = subject.run
    if run.error is not None:
        code = "GL003" if run.error.phase == "forward" else "GL004"
        return f"{run.error.phase} raised: see {code}"
    if not subject.problem.inputs:
        return "no input requires grad"
    if not any(output.differentiable for output in run.outputs):
        return "no output is differentiable"
    if subject.problem.has_sparse_inputs:
        return "an input is sparse"
    if any(output.value.is_nested for output in run.outputs):
        return "an output is nested"
    baseline = subject.once(make_baseline)
    if baseline is None:
        return "it can't be called twice: see GL605"
    return "" if compared_inputs(baseline) else "no gradient is finite: see GL302"


def compared_inputs(baseline: Baseline) -> list[int]:
    """Positions of the inputs whose gradient is finite, or None."""
    return [
        position
        for position, gradient in enumerate(baseline.gradients)
        if gradient is None or all_finite(gradient)
    ]
