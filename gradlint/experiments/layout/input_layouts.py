"""The op with its inputs in other layouts, against the op as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.baseline_comparison import (
    ROUNDINGS,
    Difference,
    compare,
    jitter,
    make_baseline,
    share_of,
)
from gradlint.experiments.forward_operators import is_random
from gradlint.experiments.judge_at_other_inputs import (
    NOT_FINITE,
    RAISED,
    RIGHT,
    WRONG,
    judge_at_other_inputs,
)
from gradlint.experiments.layout.cotangent_layouts import AlteredCall
from gradlint.experiments.layout.layout_findings import input_findings
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.preconditions import why_layouts_not_comparable
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome, Rule
from gradlint.numerics.products import widened
from gradlint.trace.altered import laid_out_op, pull_altered
from gradlint.trace.layouts import LAYOUT_WORDS, relaid
from gradlint.trace.op_io import OpRaised, Output

#: At most this many tensors are laid out one at a time to find the one that matters.
MOST_ALONE = 6

#: Layouts that are not tried on the parameters of a module: callers don't pass those, and the ways
#: they get a layout (a transposition, channels_last, a slice of a fused weight) leave no gaps
#: between elements.
NOT_OF_MODULES = ("strided",)

#: Differences that other random numbers don't make.
_BESIDE_VALUES = ("missing", "shape", "NaN")

#: Random numbers fill a tensor in the order of its memory.
DRAWS_NOTE = (
    "random numbers fill a tensor in the order of its memory: values in another layout can't be "
    "compared"
)


def compare_layouts(subject: Subject, rule: Rule, layouts: Sequence[str], help: str) -> Outcome:
    """Call the op with inputs in each of ``layouts``, and compare outputs and gradients."""
    reason = why_layouts_not_comparable(subject)
    if reason:
        return skipped(reason)
    findings: list[Finding] = []
    looked, drawn = False, False
    for layout in layouts:
        names = changed_by(subject, layout)
        groups = [names]
        if layout == "transposed" and len(names) > 1:
            groups += [names[:1], names[1:]]  # tensors that are read side by side disagree
        for group in groups if names else ():
            looked = True
            seen = call_with_inputs(subject, layout, group)
            if seen.same:
                continue
            seen = call_with_inputs(subject, layout, group)
            if seen.error is None and is_random(subject.problem):
                judged = _judge_random(subject, rule, seen, group, help)
                drawn = drawn or judged is None
                findings += judged or []
            elif seen.error is None and subject.once(make_guarded).draws[1]:
                drawn = True
                findings += input_findings(subject, rule, _beside_values(seen), group, help)
            elif not seen.same:
                blamed, alone = culprits(subject, layout, group)
                findings += input_findings(subject, rule, alone or seen, blamed, help)
    if not looked:
        return skipped("no input has another layout")
    findings = _each_once(findings)
    if any_defect(findings):
        return Outcome("fail", findings)
    return Outcome("inconclusive" if drawn else "pass", findings, note=DRAWS_NOTE if drawn else "")


def _beside_values(seen: AlteredCall) -> AlteredCall:
    """What is left where backward draws random numbers: gradients that are missing, have another
    shape or are not finite, and whatever differs in the outputs."""
    left = [item for item in seen.differences if item.kind in _BESIDE_VALUES]
    return replace(seen, differences=left)


def _judge_random(
    subject: Subject, rule: Rule, seen: AlteredCall, names: list[str], help: str
) -> list[Finding] | None:
    """The same where random numbers differ, so that values can't be compared: whether anything is
    missing, has another shape or is not finite, and whether the gradient is that of what forward
    computes with these random numbers. None where that can't be decided."""
    left = replace(
        _beside_values(seen),
        outputs=[item for item in seen.outputs if item.kind in _BESIDE_VALUES],
    )
    if not left.same:
        return input_findings(subject, rule, left, names, help)
    if subject.op.module is not None:
        return None
    there = judge_at_other_inputs(subject, subject.sample, laid_out_op(subject.op, seen.layout))
    if there.verdict == RIGHT:
        return []
    if there.verdict not in (WRONG, RAISED, NOT_FINITE):
        return None
    where = f"inputs are {LAYOUT_WORDS[seen.layout]}"
    return findings_elsewhere(
        subject, rule, there, where, cause="layout-ignored", help=help, kind="sample"
    )


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of each kind and tensor: the first layout that shows it."""
    seen: dict[tuple[str | None, str | None, str | None, str], Finding] = {}
    for finding in findings:
        key = (finding.input, finding.output, finding.cause, finding.severity)
        seen.setdefault(key, finding)
    return list(seen.values())


def tensors_with_layout(subject: Subject) -> list[tuple[str, torch.Tensor]]:
    """Everything that has a layout: inputs, and the other tensors of the sample."""
    inputs = [(item.name, item.value) for item in subject.problem.inputs]
    known = {value.data_ptr() for _, value in inputs}
    named = subject.sample.named_tensors(subject.op.signature)
    return inputs + [
        (name, value.detach())
        for name, value in named
        if value.layout == torch.strided
        and not value.is_nested
        and value.numel()
        and value.data_ptr() not in known
    ]


def changed_by(subject: Subject, layout: str) -> list[str]:
    """Names of the tensors that ``layout`` changes in memory, where it applies to them."""
    own = {item.name for item in subject.problem.parameters} if layout in NOT_OF_MODULES else set()
    return [
        name
        for name, value in tensors_with_layout(subject)
        if name not in own and relaid(value, layout) is not None
    ]


def call_with_inputs(subject: Subject, layout: str, names: list[str] | None = None) -> AlteredCall:
    """Outputs and VJP with the tensors ``names`` in ``layout``; default all that have it."""
    baseline, problem = subject.once(make_baseline), subject.problem
    assert baseline is not None
    known = {value.data_ptr(): name for name, value in tensors_with_layout(subject)}

    def place(position: int, value: torch.Tensor) -> torch.Tensor | None:
        wanted = names is None or baseline.names[position] in names
        return relaid(value, layout) if wanted else None

    def constant(value: torch.Tensor) -> torch.Tensor | None:
        if value.layout != torch.strided or value.is_nested:
            return None
        wanted = names is None or known.get(value.data_ptr()) in names
        return relaid(value, layout) if wanted else None

    try:
        outputs, gradients = pull_altered(
            problem, baseline.cotangents, inputs=place, constants=constant
        )
    except OpRaised as raised:
        return AlteredCall(layout, error=raised)
    return AlteredCall(
        layout,
        baseline.differences(gradients, among=baseline.comparable_inputs()),
        _changed_outputs(subject, outputs),
    )


def _changed_outputs(subject: Subject, outputs: list[Output]) -> list[Difference]:
    """Outputs that are not the baseline's, beyond what rounding may do to them: where sums are
    rounded, an ``argmax`` or a ``floor`` of them may jump."""
    if not any(_output_difference(subject, k, item, ()) for k, item in enumerate(outputs)):
        return []
    problem = subject.problem
    points = [[jitter(v, subject.seed + k) for v in problem.values()] for k in (1, 2)]
    try:
        moved = [problem.forward(values) for values in (problem.values(), *points)]
    except OpRaised:  # the sample lies at the edge of the domain
        moved = []
    found = (_output_difference(subject, k, item, moved) for k, item in enumerate(outputs))
    return [item for item in found if item is not None]


def _output_difference(
    subject: Subject, number: int, item: Output, moved: Sequence[Sequence[Output]]
) -> Difference | None:
    """Where output ``number`` is not the baseline's.

    Args:
        moved: outputs of forward with inputs moved by no more than a roundoff.
    """
    baseline = subject.once(make_baseline)
    expected = baseline.outputs.get(item.name) if baseline is not None else None
    if expected is None:
        return None
    wide = widened(expected)
    allowed = torch.zeros(wide.shape, dtype=torch.float64, device=wide.device)
    if wide.numel() and (expected.is_floating_point() or expected.is_complex()):
        top = torch.nan_to_num(wide.abs(), 0.0, 0.0, 0.0).max()
        allowed = allowed + share_of(expected.dtype) * top
    for outputs in moved:
        other = next((o.value for o in outputs if o.name == item.name), None)
        if other is not None and other.shape == wide.shape and other.numel():
            gap = torch.nan_to_num((widened(other.detach()) - wide).abs(), 0.0, 0.0, 0.0)
            allowed = allowed + ROUNDINGS * (gap + gap.median())
    return compare(number, item.name, item.value.detach(), expected, allowed)


def culprits(
    subject: Subject, layout: str, names: list[str]
) -> tuple[list[str], AlteredCall | None]:
    """Of the tensors ``names``, those that alone in ``layout`` change something, and what was seen
    of the first; all of them where none does alone."""
    alone: list[str] = []
    first: AlteredCall | None = None
    for name in names[:MOST_ALONE] if len(names) > 1 else ():
        seen = call_with_inputs(subject, layout, [name])
        if not seen.same:
            alone.append(name)
            first = first or seen
    return (alone or names), first
