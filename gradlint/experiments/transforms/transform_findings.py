"""Findings about an op under a program transform: what differs there, and what it raises."""

from __future__ import annotations

from typing import Any

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.raised_errors import raised_evidence, raised_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome, Rule


def difference_finding(
    subject: Subject, rule: Rule, message: str, found: Difference, *, is_output: bool, **fields: Any
) -> Finding:
    """The finding that ``found``, of an output or else of a gradient, differs under a transform.

    Args:
        fields: cause, cause_text, help and further arguments of ``Subject.finding``.
    """
    return subject.finding(
        rule,
        message,
        grounds=subject.grounds(where="transform"),
        input=None if is_output else found.name,
        output=found.name if is_output else None,
        index=found.index,
        evidence=found.evidence(),
        **fields,
    )


def raised_outcome(
    subject: Subject, rule: Rule, error: BaseException, *, refused: str, raises: str, **fields: Any
) -> Outcome:
    """What is said of an exception under a transform.

    Args:
        refused: begins the message where the transform is refused, which is information; "" where
            the op fails, and the message begins with ``raises``.
        fields: help and further arguments of ``Subject.finding``.
    """
    finding = subject.finding(
        rule,
        f"{refused or raises}: {error_line(error)}",
        cause="refused" if refused else "raises",
        evidence=raised_evidence(error),
        grounds=subject.grounds(where="transform", silent=False),
        **{"place": raised_place(error), **fields},
    )
    return Outcome("pass" if refused else "fail", [finding])
