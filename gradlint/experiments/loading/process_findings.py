"""Findings about the worker process, made by the reporting process: without torch, without an op.

Rule files import torch. What the reporting process says of a rule whose probe runs in the worker is
therefore made here, from the rule's row in the catalogue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlint.experiments.reproduce import reproduce
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Rule
from gradlint.model.settings import Settings
from gradlint.targets.source_file import read_source

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


#: A phase (of ``gradlint.ops.phase.PHASES``) → what ran then, in words.
_PHASE_WORDS = {
    "start": "while the worker started",
    "import": "while it was imported",
    "inputs": "while inputs were looked for",
    "forward": "in forward",
    "backward": "in backward",
    "rule": "in a check",
    "done": "after the last check",
}


def process_finding(
    rule: Rule,
    target: str,
    message: str,
    settings: Settings,
    *,
    evidence: dict[str, Any],
    select: str = "",
    **fields: Any,
) -> Finding:
    """A finding of ``rule`` about ``target``; evidence that is empty is left out.

    Args:
        select: code whose selection reproduces the finding, where it is not the rule's own. The
            name of work that belongs to no rule selects nothing: all of the check repeats it.
        fields: further fields of the finding.
    """
    code = select if _CODE.fullmatch(select) else ""
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        message=message,
        evidence={key: value for key, value in evidence.items() if value not in (None, "", [])},
        seed=settings.seed,
        reproduce=reproduce(target, code, settings),
        **fields,
    )


@dataclass(frozen=True)
class WorkerEnd:
    """How far a worker came, and what is known of the place where it ended.

    Args:
        target: what it checked, as typed.
        phase: one of ``gradlint.ops.phase.PHASES``: the last that ran the user's code.
        settings: of the run.
        rule: code of the check that was running, if any; sample: the label of its sample.
        location, excerpt: of the line that ran, or of the operator.
        stack: lines of the Python stack there, where known.
        output_tail: last lines that were printed.
    """

    target: str
    phase: str
    settings: Settings
    rule: str | None = None
    sample: str | None = None
    location: Location | None = None
    excerpt: Excerpt | None = None
    stack: Sequence[str] = ()
    output_tail: Sequence[str] = ()

    def __str__(self) -> str:
        """``in backward, during GL401``: what ran, in words."""
        words = _PHASE_WORDS.get(self.phase, f"in phase {self.phase}")
        return f"{words}, during {_WORK.get(self.rule, self.rule)}" if self.rule else words

    def finding(self, row: Rule, message: str, evidence: dict[str, Any], **fields: Any) -> Finding:
        """A finding of ``row`` about this end: all that is known of it, and ``evidence``."""
        return process_finding(
            row,
            self.target,
            message,
            self.settings,
            evidence={
                "phase": self.phase,
                "rule": self.rule,
                **evidence,
                "traceback": list(self.stack),
                "output_tail": list(self.output_tail),
            },
            select=self.rule or "",
            location=self.location,
            excerpt=self.excerpt,
            sample=self.sample,
            **fields,
        )


def suppression_finding(
    rule: Rule,
    target: str,
    message: str,
    help: str,
    evidence: dict[str, Any],
    location: Location | None,
    settings: Settings,
) -> Finding:
    """A finding of ``rule`` about what accepts findings of ``target``. The whole of a check
    reproduces it: it says what came of all rules."""
    source = read_source(os.path.abspath(location.file)) if location is not None else None
    excerpt = None
    if location is not None and source is not None:
        excerpt = Excerpt(((location.line, source.line(location.line)),), "here")
    return process_finding(
        rule,
        target,
        message,
        settings,
        evidence=evidence,
        help=help,
        location=location,
        excerpt=excerpt,
    )


def out_of_memory_finding(
    row: Rule, end: WorkerEnd, *, limit_mb: float | None = None, message: str = ""
) -> Finding:
    """The finding that a worker ran out of memory.

    Args:
        row: of GL007 in the catalogue.
        limit_mb: the share of memory that was allowed, in MiB.
        message: the exception's text, where there was one.
    """
    limit = f": more than {limit_mb:,.0f} MiB" if limit_mb is not None else ""
    evidence = {"limit_mb": limit_mb, "original": message}
    return end.finding(row, f"out of memory {end}{limit}", evidence, help=OUT_OF_MEMORY_HELP)


def replaced_code_finding(
    row: Rule,
    end: WorkerEnd,
    error: str,
    text: str,
    names: Sequence[str],
    *,
    settings: bool = False,
) -> Finding:
    """The finding that code of the op replaced what gradlint calls, so that it failed.

    Args:
        row: of GL008 in the catalogue.
        error, text: class and text of the exception that came of it.
        names: what was replaced.
        settings: whether that are settings and limits of the process.
    """
    shown = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
    so = "what it judged after that does not count"
    finding = end.finding(
        row,
        f"code of the op {'changes' if settings else 'replaces or removes'} {shown}: "
        f"{so if error == 'JudgeChanged' else f'gradlint failed {end}'}",
        {"changes": list(names), "exception": error, "original": text},
        help="set it back before the call ends: everything else in the process works with it too"
        if settings
        else "leave functions of libraries and `sys.modules` as they are: every other user of them "
        "in the process gets the replacement",
    )
    finding.severity = "error"
    return finding
