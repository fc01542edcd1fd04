"""Inputs in which forward is piecewise constant."""

from __future__ import annotations

from gradlint.experiments.subject import Subject
from gradlint.numerics.verdict import DIFFERS


def returns_surrogate(subject: Subject) -> bool:
    """Whether backward returns a gradient at the sample for an input in which forward stands
    still along every direction, as a rounding does."""
    if not subject.judged:
        return False
    decision = subject.first_order
    return any(
        verdict == DIFFERS and all(abs(pair.measured) <= pair.bar for pair in item.pairs)
        for verdict, item in zip(decision.verdicts, decision.judgement.inputs, strict=True)
    )
