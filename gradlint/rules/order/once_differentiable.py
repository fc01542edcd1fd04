"""Once differentiable only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.rules._rule import Outcome, Rule

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject


def probe(subject: Subject) -> Outcome:
    """See whether the op refuses openly to be differentiated twice."""
    from gradlint.rules.order._shared import safe_text
    from gradlint.targets import source

    twice = subject.twice
    if twice.error is None or not twice.refused:
        return Outcome("skipped" if twice.map is None else "pass", note=twice.reason)
    function = subject.op.function
    finding = subject.finding(
        RULE,
        "second derivatives are refused",
        place=source.method(function, "backward") if function else None,
        evidence={"original": safe_text(twice.error.error)},
        help="nothing to do if first-order gradients are all that is promised; say so in the "
        "documentation",
    )
    return Outcome("pass", [finding])


RULE = Rule(
    code="GL503",
    name="once_differentiable",
    severity="info",
    summary="second derivatives are openly refused",
    module=__name__,
    order=2,
    probe=probe,
)
