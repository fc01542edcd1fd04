"""The op with its inputs in other layouts, against the op as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint.rules._rule import Outcome, Rule
from gradlint.rules.layout._findings import of_inputs
from gradlint.rules.layout._inputs import culprits, that_change, with_inputs
from gradlint.rules.layout._seen import Seen, unable
from gradlint.trace._problem import draws_random_numbers

if TYPE_CHECKING:
    from gradlint.report import Finding
    from gradlint.rules._subject import Subject

#: Random numbers fill a tensor in the order of its memory.
DRAWN = (
    "random numbers fill a tensor in the order of its memory: values in another layout can't be "
    "compared"
)


def compare_layouts(subject: Subject, rule: Rule, layouts: Sequence[str], help: str) -> Outcome:
    """Call the op with inputs in each of ``layouts``, and compare outputs and gradients."""
    reason = unable(subject)
    if reason:
        return Outcome("skipped", note=reason)
    findings: list[Finding] = []
    looked, drawn = False, False
    for layout in layouts:
        names = that_change(subject, layout)
        # Where one tensor alone is transposed, those that are read side by side disagree.
        groups = [names, names[:1]] if layout == "transposed" and len(names) > 1 else [names]
        for group in groups if names else ():
            looked = True
            seen = with_inputs(subject, layout, group)
            if seen.same:
                continue
            seen, random = _comparable(subject, with_inputs(subject, layout, group))
            drawn = drawn or random
            if not seen.same:
                blamed, alone = culprits(subject, layout, group)
                findings += of_inputs(subject, rule, alone or seen, blamed, help)
    if not looked:
        return Outcome("skipped", note="no input has another layout")
    findings = _each_once(findings)
    if any(finding.severity != "info" for finding in findings):
        return Outcome("fail", findings)
    return Outcome("inconclusive" if drawn else "pass", findings, note=DRAWN if drawn else "")


def _comparable(subject: Subject, seen: Seen) -> tuple[Seen, bool]:
    """``seen`` without the values that other random numbers explain, and whether there are any."""
    if seen.error is not None or seen.same or not draws_random_numbers(subject.problem):
        return seen, False
    kinds = ("missing", "shape", "NaN")
    return replace(
        seen,
        differences=[item for item in seen.differences if item.kind in kinds],
        outputs=[item for item in seen.outputs if item.kind in kinds],
    ), True


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of each kind and tensor: the first layout that shows it."""
    seen: dict[tuple[str | None, str | None, str | None, str], Finding] = {}
    for finding in findings:
        key = (finding.input, finding.output, finding.cause, finding.severity)
        seen.setdefault(key, finding)
    return list(seen.values())
