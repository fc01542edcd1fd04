"""Findings on an op that fails at sizes or arguments other than the sample's."""

from __future__ import annotations

from dataclasses import replace

import torch

from gradlint.base.text import error_line
from gradlint.experiments.differentiable_maps import differentiable_names
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.judge_at_other_inputs import NOT_FINITE, RAISED, JudgementElsewhere
from gradlint.experiments.mismatch import grad_output_of, mismatch
from gradlint.experiments.one_sided_derivatives import OneSidedDerivatives
from gradlint.experiments.raised_errors import (
    WHATEVER_THE_INPUTS,
    defining_file,
    inputs_may_be_at_fault,
    raised_evidence,
    raised_place,
)
from gradlint.experiments.singular_inputs import singular_inputs
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.explained import what_explains
from gradlint.experiments.value.piecewise import returns_surrogate
from gradlint.inputs.resized import tensors_of
from gradlint.model.report import Explanation, Finding, Severity, Where
from gradlint.model.rule import Rule
from gradlint.targets import source

#: Causes that lie in the values there, so that advice on sizes would contradict them.
_OF_VALUES = ("repeated-index",)


def findings_elsewhere(
    subject: Subject,
    rule: Rule,
    seen: JudgementElsewhere,
    where: str,
    *,
    cause: str,
    help: str,
    kind: Where,
    severity: Severity | None = None,
    explained: Explanation | None = None,
) -> list[Finding]:
    """Findings on ``seen``: one for an exception of backward, or one for each input.

    Args:
        where: the arguments in words, after "where".
        cause: slug.
        kind: of these arguments.
        severity: default that of the rule.
        explained: what explains them, if that is known.
    """
    found = _findings(subject, rule, seen, where, cause=cause, help=help)
    if severity is None and any(item.severity == "error" for item in found):
        # The gradients of other inputs may be part of the same surrogate.
        severity = "warning" if returns_surrogate(subject) else None
    return [
        replace(
            item,
            severity=severity or item.severity,
            grounds=replace(
                item.grounds, where=kind, explained=explained or item.grounds.explained
            ),
        )
        for item in found
    ]


def _findings(
    subject: Subject, rule: Rule, seen: JudgementElsewhere, where: str, *, cause: str, help: str
) -> list[Finding]:
    if seen.verdict == RAISED:
        return [_raised_finding(subject, rule, seen, where, cause=cause, help=help)]
    if seen.verdict == NOT_FINITE:
        return _nonfinite_findings(subject, rule, seen, where, cause=cause, help=help)
    return [
        _wrong_gradient_finding(subject, rule, seen, position, where, cause=cause, help=help)
        for position in seen.positions
    ]


def _raised_finding(
    subject: Subject,
    rule: Rule,
    seen: JudgementElsewhere,
    where: str,
    *,
    cause: str,
    help: str,
) -> Finding:
    assert seen.error is not None
    error = seen.error.error
    prefer = defining_file(subject)
    backward = source.method(subject.op, "backward")
    return subject.finding(
        rule,
        f"backward raises {type(error).__name__} where {where}",
        cause=cause,
        cause_text=error_line(error),
        place=raised_place(error, prefer) or (backward if backward[0] is not None else None),
        evidence=raised_evidence(error, prefer),
        grounds=subject.grounds(
            silent=False,
            refused=isinstance(error, NotImplementedError),
            guessed=inputs_may_be_at_fault(subject, error),
            chosen="by accident" if _integers_were_made(subject, seen.subject, error) else "",
        ),
        help=help,
    )


def _integers_were_made(given: Subject, there: Subject, error: BaseException) -> bool:
    """Whether ``error`` may come of the values of integers that were made for other sizes: the
    nodes of a tree depend on how many there are, and nobody gave these."""
    before, after = tensors_of(given.sample), tensors_of(there.sample)
    made = any(
        old.shape != new.shape and not (old.is_floating_point() or old.is_complex())
        for old, new in zip(before, after, strict=False)
        if old.dtype != torch.bool
    )
    avoidable = not isinstance(error, WHATEVER_THE_INPUTS)
    return made and given.sample.origin != "inferred" and avoidable


def _wrong_gradient_finding(
    subject: Subject,
    rule: Rule,
    seen: JudgementElsewhere,
    position: int,
    where: str,
    *,
    cause: str,
    help: str,
) -> Finding:
    problem = seen.subject.problem
    item = problem.inputs[position]
    decision = seen.decision
    assert decision is not None
    place = next(
        k for k, judged in enumerate(decision.judgement.inputs) if judged.index == position
    )
    found = mismatch(
        decision.function,
        decision,
        place,
        [other.name for other in problem.inputs],
        seed=seen.subject.seed,
        outputs=[grad_output_of(output) for output in differentiable_names(problem)],
        arguments=seen.subject.other_arguments(),
        subject=seen.subject,
    )
    span = gradient_place(subject, subject.problem.inputs[position])
    if found.cause is not None and found.cause.slug in _OF_VALUES:
        help = found.cause.help
    return subject.finding(
        rule,
        f"wrong gradient for `{item.name}` where {where}",
        cause=cause,
        cause_text=found.cause.text if found.cause else "",
        input=item.name,
        index=found.worst,
        place=span,
        evidence=found.numbers,
        grounds=subject.grounds(
            **found.weight,
            **what_explains(
                seen.subject, position, found.relative_error, chosen=True, worst=found.worst
            ),
        ),
        help=help,
    )


def _nonfinite_findings(
    subject: Subject, rule: Rule, seen: JudgementElsewhere, where: str, *, cause: str, help: str
) -> list[Finding]:
    """Findings where the function has a finite derivative and the gradient is not finite."""
    slopes = OneSidedDerivatives(seen.subject)
    singular: set[str] | None = None
    findings = []
    for position in seen.positions:
        gradient = seen.gradients[position]
        if gradient is None:
            continue
        bad = (~gradient.detach().isfinite()).nonzero()
        index = [int(k) for k in bad[0]]
        value = gradient.detach()[tuple(index)].item()
        if not slopes.at(position, index).finite_for(complex(value)):
            continue
        item = subject.problem.inputs[position]
        if singular is None:
            singular = singular_inputs(subject, seen.subject)
        findings.append(
            subject.finding(
                rule,
                f"gradient for `{item.name}` is not finite where {where}",
                cause=cause,
                input=item.name,
                index=index,
                place=gradient_place(subject, item),
                evidence={"differing": f"{len(bad)} of {gradient.numel()} elements"},
                grounds=subject.grounds(explained="singular" if item.name in singular else None),
                help=help,
            )
        )
    return findings
