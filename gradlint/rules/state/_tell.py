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
        "missing": "is missing" if difference.got == "None" else "is there, and is none else,",
        "shape": "has another shape",
        "NaN": "is not finite",
    }.get(difference.kind, "is another")
    return subject.finding(
        rule,
        f"the gradient for `{item.name}` {how} {when}",
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
