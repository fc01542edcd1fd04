"""Findings of an op that was compared with itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.report import Finding
    from gradlint.rules._rule import Rule
    from gradlint.rules._same import Difference
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import OpRaised


def changed_gradient(
    subject: Subject,
    rule: Rule,
    difference: Difference,
    when: str,
    *,
    help: str,
    severity: str | None = None,
    cause: str | None = None,
    cause_text: str = "",
) -> Finding:
    """A finding that the gradient of an input changes.

    Args:
        when: under which circumstance: "in the second backward".
    """
    from gradlint.rules._place import gradient_place

    item = subject.problem.inputs[difference.position]
    how = {
        "missing": "is missing",
        "shape": "has another shape",
        "NaN": "is not finite",
    }.get(difference.kind, "is another")
    message = f"the gradient for `{item.name}` {how} {when}"
    if difference.kind == "missing" and difference.got != "None":
        message = f"a gradient for `{item.name}` appears {when}: there is none otherwise"
    return subject.finding(
        rule,
        message,
        severity=severity,
        cause=cause,
        cause_text=cause_text,
        input=item.name,
        index=difference.index,
        place=gradient_place(subject, item),
        evidence=difference.evidence(),
        help=help,
    )


def raised_there(
    subject: Subject,
    rule: Rule,
    raised: OpRaised,
    when: str,
    *,
    help: str,
    severity: str | None = None,
) -> Finding:
    """A finding that the op raises under a circumstance, and does not otherwise."""
    from gradlint.rules._raised import raised_finding

    found = raised_finding(subject, rule, raised.error, f"{raised.phase} raises {when}:")
    return replace(found, severity=severity or rule.severity, help=help)
