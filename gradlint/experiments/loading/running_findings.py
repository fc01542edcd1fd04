"""Findings that the runner makes in the reporting process, without torch and without an op."""

from __future__ import annotations

from typing import Any

from gradlint.experiments.reproduce import reproduce
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Rule
from gradlint.model.settings import Settings


def running_finding(
    rule: Rule,
    target: str,
    message: str,
    settings: Settings,
    *,
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    evidence: dict[str, Any] | None = None,
    help: str = "",
    cause_text: str = "",
    sample: str | None = None,
    select: str = "",
) -> Finding:
    """A finding of ``rule`` about ``target``; evidence that is empty is left out.

    Args:
        select: code whose selection reproduces the finding, where it is not the rule's own.
    """
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        message=message,
        cause_text=cause_text,
        location=location,
        excerpt=excerpt,
        evidence={
            key: value for key, value in (evidence or {}).items() if value not in (None, "", [])
        },
        help=help,
        sample=sample,
        seed=settings.seed,
        reproduce=reproduce(target, select, settings),
    )


def where(phase: str, rule: str | None) -> str:
    """``in backward, while looking for GL401``: what ran, in words."""
    places = {
        "start": "while the worker started",
        "import": "while it was imported",
        "inputs": "while inputs were looked for",
        "forward": "in forward",
        "backward": "in backward",
        "rule": "in a check",
        "done": "after the last check",
    }
    words = places.get(phase, f"in phase {phase}")
    return f"{words}, during {rule}" if rule else words
