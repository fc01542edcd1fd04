"""Identical calls of an op, compared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from gradlint.rules._same import compared
from gradlint.rules.state._fit import differing, outputs_differing
from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._same import Difference
    from gradlint.rules._subject import Subject

#: Calls made for the comparison alone, beside the four of other rules; on a GPU, where blocks race,
#: more of them (heuristic: what these miss shows once in tens of calls).
MORE = 0
MORE_ON_GPU = 10

Call = tuple[dict[str, torch.Tensor], list["torch.Tensor | None"]]


@dataclass
class Repeats:
    """How calls identical to the first one compare with it.

    Args:
        calls: how many there were; differing: how many were not the first's, beyond rounding;
            bits: in any bit.
        outputs, gradients: where they were not, in the first such call.
        first_only: whether all but the first agree.
    """

    calls: int = 0
    differing: int = 0
    bits: int = 0
    outputs: list[Difference] = field(default_factory=list)
    gradients: list[Difference] = field(default_factory=list)
    first_only: bool = False


def repeat(subject: Subject) -> Repeats:
    """Compare the first call with every later identical one."""
    baseline = subject.baseline
    assert baseline is not None
    found = Repeats()
    calls = _calls(subject)
    for outputs, gradients in calls:
        found.calls += 1
        wrong_outputs = outputs_differing(baseline, outputs)
        wrong_gradients = differing(baseline, gradients)
        if wrong_outputs or wrong_gradients:
            found.differing += 1
            found.outputs = found.outputs or wrong_outputs
            found.gradients = found.gradients or wrong_gradients
        found.bits += not _same_bits(baseline.outputs, outputs, baseline.gradients, gradients)
    if found.differing == found.calls > 1:
        first_outputs, first = calls[-1]
        later = replace(baseline, gradients=first, outputs=first_outputs)
        found.first_only = not any(
            differing(later, gradients) or outputs_differing(later, outputs)
            for outputs, gradients in calls[:-1]
        )
    return found


def _calls(subject: Subject) -> list[Call]:
    baseline, problem, guarded = subject.baseline, subject.problem, subject.guarded
    assert baseline is not None
    calls: list[Call] = [({}, gradients) for gradients in baseline.repeats]
    if guarded.error is None and guarded.first and not guarded.draws[1]:
        calls.append((guarded.outputs, guarded.first))
    if subject.lifetime is not None:
        calls.append(({}, subject.lifetime.gradients))
    cuda = any(value.is_cuda for value in problem.values())
    for _ in range(MORE_ON_GPU if cuda else MORE):
        try:
            leaves, outputs = problem.linearize()
            chosen = [o for o in outputs if o.name in baseline.cotangents and o.differentiable]
            gradients = problem.backward(
                chosen, leaves, [baseline.cotangents[item.name] for item in chosen]
            )
        except OpRaised:
            break
        values = {item.name: item.value.detach() for item in outputs}
        calls.append((values, gradients))
    return calls


def _same_bits(
    outputs: dict[str, torch.Tensor],
    other: dict[str, torch.Tensor],
    gradients: list[torch.Tensor | None],
    others: list[torch.Tensor | None],
) -> bool:
    pairs = [(outputs[name], other[name]) for name in outputs if name in other]
    pairs += [
        (a, b) for a, b in zip(gradients, others, strict=True) if a is not None and b is not None
    ]
    return all(a.is_nested or compared(0, "", a, b, None) is None for a, b in pairs)
