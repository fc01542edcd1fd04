"""What an in-place operation on an output does: to the op's arguments, and to its gradient."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from gradlint.base.text import error_text
from gradlint.experiments.baseline_comparison import Baseline, Difference, make_baseline
from gradlint.experiments.state.guarded_run import same_values
from gradlint.experiments.subject import Subject
from gradlint.trace.graph import memory_of
from gradlint.trace.op_io import Handed, OpRaised, Output
from gradlint.trace.problem import Problem

#: In PyTorch's refusal to change a view in place that a Function returned.
_VIEW_REFUSED = "created inside a custom Function"


@dataclass
class InplaceChange:
    """Outputs multiplied by two in place before backward.

    Args:
        refused: PyTorch's refusal because an output is a view made inside of a Function; else "".
        changed: arguments that changed with the outputs.
        wrong: gradients that are not those of ``out.clone().mul_(2)``.
    """

    refused: str = ""
    changed: list[str] = field(default_factory=list)
    wrong: list[Difference] = field(default_factory=list)


def make_inplace_change(subject: Subject) -> InplaceChange:
    """What an in-place operation on the outputs does; needs a baseline."""
    baseline = subject.once(make_baseline)
    assert baseline is not None
    return change_outputs_in_place(subject.problem, baseline)


def change_outputs_in_place(problem: Problem, baseline: Baseline) -> InplaceChange:
    """Change the outputs in place, and differentiate.

    With half the cotangent the gradient must be the usual one, exactly: factors of two do not
    round.
    """
    found = InplaceChange()
    leaves = problem.leaves()
    with torch.enable_grad(), problem.handing_over() as handed:
        outputs = problem.connect([leaf.clone() for leaf in leaves])
    known = [item for item in outputs if item.name in baseline.cotangents and item.differentiable]
    chosen = [item for item in known if item.value.numel()]  # nothing without elements is changed
    places = [memory_of(item.value) for item in chosen]
    if len(set(places)) < len(places) or None in places:
        return found
    intact = [item for item in handed if _intact(item)]
    try:
        with torch.enable_grad():
            for item in chosen:
                item.value.mul_(2)
    except RuntimeError as error:  # expanded outputs, views and leaves are refused
        text = error_text(error)
        found.refused = text if _VIEW_REFUSED in text else ""
        return found
    found.changed = [
        item.name for item in intact if not _intact(item) and not _is_known_view(item, chosen)
    ]
    try:
        halves = [baseline.cotangents[item.name] * 0.5 for item in chosen]
        found.wrong = baseline.differences(problem.backward(chosen, leaves, halves))
    except OpRaised:  # the version check noticed the change, as it should
        return found
    return found


def _intact(item: Handed) -> bool:
    tensor, value = item.tensor, item.value
    if tensor.layout != torch.strided or tensor.is_nested:
        return True
    return same_values(tensor.detach(), value)


def _is_known_view(item: Handed, outputs: list[Output]) -> bool:
    """Whether an output is a view of the argument that autograd knows about."""
    return any(
        output.value._is_view() and memory_of(output.value) == memory_of(item.tensor)
        for output in outputs
    )
