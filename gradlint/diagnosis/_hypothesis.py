"""A hypothesis: what backward should have returned if a certain fault were the only one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import Evidence, Fit, meets


@dataclass(frozen=True)
class Hypothesis:
    """One possible fault.

    Args:
        slug: slug of the cause.
        text: what holds if it is the cause; " to 2e-10 in 16 of 16 measurements" is appended.
        help: what to change.
        candidate: returns the right gradient if it is the cause; None if it does not apply.
        after: text that follows after that.
    """

    slug: str
    text: str
    help: str
    candidate: Callable[[Evidence], torch.Tensor | None]
    after: str = ""

    def cause(self, fit: Fit) -> Cause:
        """The cause, with how well it explains the evidence."""
        return Cause(self.slug, f"{self.slug}: {self.text}{fit}{self.after}", self.help, fit.misfit)


def surviving(
    hypotheses: Iterable[Hypothesis], evidence: Sequence[Evidence]
) -> list[tuple[Hypothesis, Fit]]:
    """The hypotheses that explain all of ``evidence``, tested item by item, so that only one
    candidate exists at a time."""
    alive = [(hypothesis, Fit(0.0, 0)) for hypothesis in hypotheses]
    for item in evidence:
        still = []
        for hypothesis, total in alive:
            found = meets(item, hypothesis.candidate(item))
            if found is not None:
                still.append((hypothesis, total + found))
        alive = still
    return [(hypothesis, fit) for hypothesis, fit in alive if fit.count and fit.removes_the_error]
