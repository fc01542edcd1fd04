"""Findings of an op that was compared with itself."""

from __future__ import annotations

from dataclasses import replace

from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.gradient_place import Place, gradient_place
from gradlint.experiments.raised_errors import raised_finding
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Rule
from gradlint.trace.op_io import OpRaised


def changed_gradient_finding(
    subject: Subject,
    rule: Rule,
    difference: Difference,
    when: str,
    *,
    help: str,
    severity: Severity | None = None,
    cause: str | None = None,
    cause_text: str = "",
    place: Place | None = None,
) -> Finding:
    """A finding that the gradient of an input changes.

    Args:
        when: under which circumstance: "in the second backward".
        place: default the expression that backward returns.
    """
    item = subject.problem.inputs[difference.position]
    how = {
        "missing": "is missing",
        "shape": "has a different shape",
        "NaN": "is not finite",
    }.get(difference.kind, "changes")
    message = f"the gradient for `{item.name}` {how} {when}"
    if difference.kind == "missing" and difference.got != "None":
        message = f"a gradient for `{item.name}` appears only {when}"
    return subject.finding(
        rule,
        message,
        severity=severity,
        cause=cause,
        cause_text=cause_text,
        input=item.name,
        index=difference.index,
        place=place or gradient_place(subject, item),
        evidence=difference.evidence(),
        help=help,
    )


def raised_there_finding(
    subject: Subject,
    rule: Rule,
    raised: OpRaised,
    when: str,
    *,
    help: str,
    severity: Severity | None = None,
) -> Finding:
    """A finding that the op raises under a circumstance, and not otherwise."""
    found = raised_finding(subject, rule, raised.error, f"{raised.phase} raises {when}:")
    refused = isinstance(raised.error, NotImplementedError)
    grounds = replace(found.grounds, refused=refused)
    return replace(found, severity=severity or rule.severity, help=help, grounds=grounds)
