"""Findings about the worker process, made by the reporting process: without torch, without an op.

Rule files import torch. What the reporting process says of a rule whose probe runs in the worker is
therefore made here, from the rule's row in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradlint.experiments.reproduce import reproduce
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Rule
from gradlint.model.settings import Settings

#: Names that a message lists.
MOST_NAMES = 4

#: What a rule's code looks like. Work that belongs to no rule can't be selected.
_CODE = re.compile(r"GL\d{3}")

#: Such work, as messages name it.
_WORK = {
    "anatomy": "the look at its tensors",
    "gradcheck": "torch's gradcheck",
    "gradgradcheck": "torch's gradgradcheck",
}

#: The next step where memory ran out.
OUT_OF_MEMORY_HELP = (
    "look for an allocation that grows with the product of the sizes or with values instead of "
    "shapes; if the op needs it, give it smaller inputs (--inputs)"
)


def process_finding(
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
        select: code whose selection reproduces the finding, where it is not the rule's own. The
            name of work that belongs to no rule selects nothing: all of the check repeats it.
    """
    code = select if _CODE.fullmatch(select) else ""
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
        reproduce=reproduce(target, code, settings),
    )


def phase_words(phase: str, rule: str | None) -> str:
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
    return f"{words}, during {_WORK.get(rule, rule)}" if rule else words


def out_of_memory_finding(
    row: Rule,
    target: str,
    phase: str,
    settings: Settings,
    *,
    rule: str | None = None,
    limit_mb: float | None = None,
    message: str = "",
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    sample: str | None = None,
    output_tail: Sequence[str] = (),
    stack: Sequence[str] = (),
) -> Finding:
    """The finding that the worker of ``target`` ran out of memory.

    Args:
        row: of GL007 in the catalogue.
        phase: one of ``gradlint.ops.phase.PHASES``.
        rule: code of the check that was running, if any.
        limit_mb: the share of memory that was allowed, in MiB.
        message: the exception's text, where there was one.
    """
    limit = f": more than {limit_mb:,.0f} MiB" if limit_mb is not None else ""
    return process_finding(
        row,
        target,
        f"out of memory {phase_words(phase, rule)}{limit}",
        settings,
        location=location,
        excerpt=excerpt,
        evidence={
            "phase": phase,
            "rule": rule,
            "limit_mb": limit_mb,
            "original": message,
            "traceback": list(stack),
            "output_tail": list(output_tail),
        },
        help=OUT_OF_MEMORY_HELP,
        sample=sample,
        select=rule or "",
    )


def replaced_code_finding(
    row: Rule,
    target: str,
    phase: str,
    settings: Settings,
    failure: dict[str, Any],
    *,
    rule: str | None = None,
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    sample: str | None = None,
    output_tail: Sequence[str] = (),
    stack: Sequence[str] = (),
) -> Finding:
    """The finding that code of ``target`` replaced what gradlint calls, so that it failed.

    Args:
        row: of GL008 in the catalogue.
        phase: one of ``gradlint.ops.phase.PHASES``: the last that ran the user's code.
        failure: what came of it: ``type`` and ``text`` of the exception, and the names that were
            ``replaced``.
        rule: code of the check that was running, if any.
    """
    names = failure["replaced"]
    shown = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
    finding = process_finding(
        row,
        target,
        f"code of the op replaces or removes {shown}: gradlint failed {phase_words(phase, rule)}",
        settings,
        location=location,
        excerpt=excerpt,
        evidence={
            "phase": phase,
            "rule": rule,
            "changes": list(names),
            "exception": failure["type"],
            "original": failure["text"],
            "traceback": list(stack),
            "output_tail": list(output_tail),
        },
        help="leave functions of libraries and `sys.modules` as they are: every other user of them "
        "in the process gets the replacement",
        sample=sample,
        select=rule or "",
    )
    finding.severity = "error"
    return finding
