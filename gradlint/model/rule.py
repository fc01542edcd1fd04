"""What a rule is: one defect that can be found, with its text and the experiment that finds it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradlint.model.report import Finding

if TYPE_CHECKING:
    from gradlint.experiments.subject import Subject

#: Headings of a rule's text, in this order, in the docstring of its module.
HEADINGS = ("What it finds", "Why it matters", "Bad", "Good", "How it looks", "References")


@dataclass
class Outcome:
    """What a probe saw.

    Args:
        verdict: "pass", "fail", "inconclusive" or "skipped". "fail" goes with findings of
            severity error or warning; info findings may stand beside a "pass".
        findings: the defects.
        resolution: smallest relative gradient error the probe would have seen, if it has one.
        note: why it was skipped or could not tell, or what else a reader should know.
    """

    verdict: str = "pass"
    findings: list[Finding] = field(default_factory=list)
    resolution: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Rule:
    """One defect that can be found.

    Args:
        code: stable code such as "GL101"; never reused.
        name: names the fault, not the cure, in snake case.
        severity: "error", "warning" or "info"; a finding may lower it, never raise it.
        summary: one line for ``gradlint rules``.
        module: ``__name__`` of the rule's module, whose docstring is the rule's text.
        order: 1 or 2; rules of order 2 do not run under ``--order 1``.
        probe: the experiment; None where the runner itself observes the defect (loading,
            crashes, time-outs).
    """

    code: str
    name: str
    severity: str
    summary: str
    module: str
    order: int = 1
    probe: Callable[[Subject], Outcome] | None = None

    @property
    def text(self) -> str:
        """The rule's documentation: the docstring of its module."""
        return sys.modules[self.module].__doc__ or ""
