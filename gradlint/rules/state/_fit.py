"""Whether an op can be compared with itself, and why not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint.rules._same import share_of

if TYPE_CHECKING:
    import torch

    from gradlint.rules._same import Baseline, Difference
    from gradlint.rules._subject import Subject

#: Note of rules that compare, where there is nothing to compare with.
CHANCE = "identical calls give different results: see GL606"


def unfit(subject: Subject) -> str:
    """Why the op's gradients can't be compared with each other, in words; else ""."""
    raised = subject.run.error
    if raised is not None:
        return f"{raised.phase} raised: see {'GL003' if raised.phase == 'forward' else 'GL004'}"
    if not subject.problem.inputs:
        return "no input requires grad"
    if not any(item.differentiable for item in subject.run.outputs):
        return "no output is differentiable"
    if any(item.value.is_nested for item in subject.run.outputs):
        return "an output is nested"
    if subject.problem.has_sparse_inputs:
        return "an input is sparse"
    if subject.baseline is None:
        return "an identical second call raised"
    if unsteady(subject):
        return CHANCE
    return ""


def unsteady(subject: Subject) -> bool:
    """Whether identical runs differed beyond rounding, in outputs or gradients."""
    baseline = subject.baseline
    if baseline is None:
        return False
    return any(differing(baseline, found) for found in baseline.repeats) or bool(
        outputs_differing(baseline, subject.guarded.outputs)
    )


def wavers(subject: Subject) -> bool:
    """Whether still more identical calls are not the first one's: to be asked before a difference
    is blamed on anything but chance."""
    from gradlint.rules.state._repeats import repeat

    return repeat(subject).differing > 0


def differing(baseline: Baseline, gradients: list[torch.Tensor | None]) -> list[Difference]:
    """Where ``gradients``, of a run identical to the baseline's, differ beyond rounding. What was
    moved or repeated says nothing here: of an op that is not deterministic it is chance too."""
    return replace(baseline, repeats=[], jittered=None).differences(gradients)


def outputs_differing(baseline: Baseline, outputs: dict[str, torch.Tensor]) -> list[Difference]:
    """Outputs that are not the baseline's, beyond rounding."""
    import torch

    from gradlint.numerics._products import widened
    from gradlint.rules._same import compared

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
        difference = compared(position, name, got, expected, allowed)
        if difference is not None:
            found.append(difference)
    return found


def unrun(subject: Subject) -> str:
    """Why there is no guarded run to look at, in words; else ""."""
    if subject.run.error is not None and subject.run.error.phase == "forward":
        return "forward raised: see GL003"
    if not subject.run.cotangents:
        return "no output is differentiable"
    raised = subject.run.error or subject.guarded.error
    return f"{raised.phase} raised: see GL004" if raised is not None else ""


def relative_to(subject: Subject, gradients: list[torch.Tensor | None]) -> Baseline:
    """The baseline with ``gradients``, of one graph, in its place: what is drawn in backward is no
    rounding."""
    baseline = subject.baseline
    assert baseline is not None
    if subject.guarded.draws[1]:
        return replace(baseline, gradients=gradients, repeats=[], jittered=None)
    return replace(baseline, gradients=gradients)
