"""Identical calls of an op, compared with each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from gradlint.experiments.baseline_comparison import (
    Baseline,
    Difference,
    compare,
    make_baseline,
    share_of,
)
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.state.lifetimes import make_lifetime
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import widened
from gradlint.trace.op_io import OpRaised

#: Calls made for the comparison alone, in addition to the four of other rules; on a GPU, where
#: blocks race, more of them (heuristic: what these miss shows once in tens of calls).
EXTRA_CALLS = 0

EXTRA_CALLS_ON_GPU = 10

CallResults = tuple[dict[str, torch.Tensor], list["torch.Tensor | None"]]

#: Note of rules that compare, where there is nothing to compare with.
NONDETERMINISTIC_NOTE = "identical calls give different results: see GL606"


def is_nondeterministic(subject: Subject) -> bool:
    """Whether identical runs differed beyond rounding, in outputs or gradients."""
    baseline = subject.once(make_baseline)
    if baseline is None:
        return False
    return any(differing_gradients(baseline, found) for found in baseline.repeats) or bool(
        differing_outputs(baseline, subject.once(make_guarded).outputs)
    )


def differs_on_repeat(subject: Subject) -> bool:
    """Whether further identical calls differ from the first: to be called before a difference is
    attributed to anything but chance."""

    return compare_repeats(subject).differing > 0


def differing_gradients(
    baseline: Baseline, gradients: list[torch.Tensor | None]
) -> list[Difference]:
    """Where ``gradients``, of a run identical to the baseline's, differ beyond rounding. The
    tolerances from moved or repeated runs are not used: in a random op they are random too."""
    return replace(baseline, repeats=[], jittered=None).differences(gradients)


def differing_outputs(baseline: Baseline, outputs: dict[str, torch.Tensor]) -> list[Difference]:
    """Outputs that are not the baseline's, beyond rounding."""
    found = []
    for position, (name, expected) in enumerate(baseline.outputs.items()):
        got = outputs.get(name)
        if got is None or any(t.is_nested or t.is_quantized for t in (got, expected)):
            continue
        allowed = None
        if expected.is_floating_point() or expected.is_complex():
            wide = torch.nan_to_num(widened(expected), 0.0, 0.0, 0.0).abs()
            top = float(wide.max()) if wide.numel() else 0.0
            allowed = torch.full_like(wide, share_of(expected.dtype) * top)
        difference = compare(position, name, got, expected, allowed)
        if difference is not None:
            found.append(difference)
    return found


def baseline_with(subject: Subject, gradients: list[torch.Tensor | None]) -> Baseline:
    """The baseline with ``gradients``, of one graph, in its place. Where backward draws random
    numbers, differences from repeated runs are not rounding."""
    baseline = subject.once(make_baseline)
    assert baseline is not None
    if subject.once(make_guarded).draws[1]:
        return replace(baseline, gradients=gradients, repeats=[], jittered=None)
    return replace(baseline, gradients=gradients)


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


def compare_repeats(subject: Subject) -> Repeats:
    """Compare the first call with every later identical one."""
    baseline = subject.once(make_baseline)
    assert baseline is not None
    found = Repeats()
    calls = _calls(subject)
    for outputs, gradients in calls:
        found.calls += 1
        wrong_outputs = differing_outputs(baseline, outputs)
        wrong_gradients = differing_gradients(baseline, gradients)
        if wrong_outputs or wrong_gradients:
            found.differing += 1
            found.outputs = found.outputs or wrong_outputs
            found.gradients = found.gradients or wrong_gradients
        found.bits += not _same_bits(baseline.outputs, outputs, baseline.gradients, gradients)
    if found.differing == found.calls > 1:
        first_outputs, first = calls[-1]
        later = replace(baseline, gradients=first, outputs=first_outputs)
        found.first_only = not any(
            differing_gradients(later, gradients) or differing_outputs(later, outputs)
            for outputs, gradients in calls[:-1]
        )
    return found


def _calls(subject: Subject) -> list[CallResults]:
    baseline, problem, guarded = (
        subject.once(make_baseline),
        subject.problem,
        subject.once(make_guarded),
    )
    assert baseline is not None
    calls: list[CallResults] = [({}, gradients) for gradients in baseline.repeats]
    if guarded.error is None and guarded.first and not guarded.draws[1]:
        calls.append((guarded.outputs, guarded.first))
    lifetime = subject.once(make_lifetime)
    if lifetime is not None:
        calls.append(({}, lifetime.gradients))
    cuda = any(value.is_cuda for value in problem.values())
    for _ in range(EXTRA_CALLS_ON_GPU if cuda else EXTRA_CALLS):
        try:
            leaves, outputs = problem.linearize()
            gradients = problem.pull_from(outputs, leaves, baseline.cotangents)
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
    return all(a.is_nested or compare(0, "", a, b, None) is None for a, b in pairs)
