"""Two calls of an op at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.state.repeated_calls import differing_outputs
from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.trace.op_io import OpRaised, Output

#: Factor on numbers for the other call (heuristic: it keeps probabilities and slopes valid).
SCALED = 0.75


@dataclass
class Interleaved:
    """What a second call did to a first one.

    Args:
        raised: what the first call's backward raised.
        outputs, gradients: of the first call, where they are not the baseline's.
        overwritten: gradients of the first call that changed in the second one's backward.
    """

    raised: OpRaised | None = None
    outputs: list[Difference] = field(default_factory=list)
    gradients: list[Difference] = field(default_factory=list)
    overwritten: list[Difference] = field(default_factory=list)


def interleave(subject: Subject) -> Interleaved | None:
    """Forward, another forward, the first one's backward, the other one's. None where the op takes
    no other values."""
    baseline, problem = subject.once(make_baseline), subject.problem
    assert baseline is not None
    found = Interleaved()
    leaves, outputs = problem.linearize()
    before = {item.name: item.value.detach().clone() for item in outputs}
    later = _other_call(subject)
    if later is None:
        return None
    other_leaves, other_outputs = later
    values = {item.name: item.value.detach() for item in outputs}
    found.outputs = differing_outputs(replace(baseline, outputs=before), values)
    chosen = _chosen(outputs, baseline.cotangents)
    try:
        gradients = problem.backward(
            chosen, leaves, [baseline.cotangents[item.name] for item in chosen]
        )
    except OpRaised as raised:
        found.raised = raised
        return found
    found.gradients = baseline.differences(gradients)
    others = _chosen(other_outputs, baseline.cotangents)
    try:
        ones = [torch.ones_like(item.value) for item in others]
        problem.backward(others, other_leaves, ones)
    except OpRaised:  # its inputs are synthetic: ignore failures
        return found
    found.overwritten = baseline.differences(gradients)
    return found


def _chosen(outputs: list[Output], cotangents: dict[str, torch.Tensor]) -> list[Output]:
    return [item for item in outputs if item.name in cotangents and item.differentiable]


def _other_call(subject: Subject) -> tuple[list[torch.Tensor], list[Output]] | None:
    """A forward with other values: other tensors and, where the op takes them, other floats."""
    values = [other_value(value) for value in subject.problem.values()]
    for scaled in (True, False):
        sample = _other_floats(subject.sample) if scaled else subject.sample
        if sample is None:
            continue
        problem = subject.problem.at(sample)
        problem.in_place = subject.problem.in_place
        try:
            found = problem.linearize(values)
        except OpRaised:
            continue
        finally:
            subject.problem.forward_calls += problem.forward_calls
        return found
    return None


def other_value(value: torch.Tensor) -> torch.Tensor:
    """The elements of ``value`` in reversed order, or smaller ones where that is the same. Reversal
    keeps a domain: signs, ranges, symmetry and definiteness."""
    reversed_ = value.reshape(-1).flip(0).reshape(value.shape)
    return value * SCALED if torch.equal(reversed_, value) else reversed_


def _other_floats(sample: Sample) -> Sample | None:
    """``sample`` with every Python float scaled; None where it holds none."""
    count = 0

    def convert(value: Any) -> Any:
        nonlocal count
        if type(value) is float:
            count += 1
            return value * SCALED
        if type(value) in (list, tuple):
            return type(value)(map(convert, value))
        return value

    args = tuple(map(convert, sample.args))
    kwargs = {name: convert(value) for name, value in sample.kwargs.items()}
    return replace(sample, args=args, kwargs=kwargs) if count else None
