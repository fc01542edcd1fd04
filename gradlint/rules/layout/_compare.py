"""The op with its inputs in other layouts, against the op as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint.rules._elsewhere import NOT_FINITE, RAISED, RIGHT, WRONG, look
from gradlint.rules._rule import Outcome, Rule
from gradlint.rules._told import told
from gradlint.rules.layout._findings import of_inputs
from gradlint.rules.layout._inputs import culprits, that_change, with_inputs
from gradlint.rules.layout._seen import Seen, unable
from gradlint.trace._altered import laid_out_op
from gradlint.trace._layouts import LAYOUT_WORDS
from gradlint.trace._seeded import draws

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
        groups = [names]
        if layout == "transposed" and len(names) > 1:
            groups += [names[:1], names[1:]]  # tensors that are read side by side disagree
        for group in groups if names else ():
            looked = True
            seen = with_inputs(subject, layout, group)
            if seen.same:
                continue
            seen = with_inputs(subject, layout, group)
            if seen.error is None and draws(subject.problem):
                judged = _judged(subject, rule, seen, group, help)
                drawn = drawn or judged is None
                findings += judged or []
            elif not seen.same:
                blamed, alone = culprits(subject, layout, group)
                findings += of_inputs(subject, rule, alone or seen, blamed, help)
    if not looked:
        return Outcome("skipped", note="no input has another layout")
    findings = _each_once(findings)
    if any(finding.severity != "info" for finding in findings):
        return Outcome("fail", findings)
    return Outcome("inconclusive" if drawn else "pass", findings, note=DRAWN if drawn else "")


def _judged(
    subject: Subject, rule: Rule, seen: Seen, names: list[str], help: str
) -> list[Finding] | None:
    """The same where random numbers differ, so that values can't be compared: whether anything is
    missing, has another shape or is not finite, and whether the gradient is that of what forward
    computes with these random numbers. None in place of findings where that can't be told."""
    kinds = ("missing", "shape", "NaN")
    left = replace(
        seen,
        differences=[item for item in seen.differences if item.kind in kinds],
        outputs=[item for item in seen.outputs if item.kind in kinds],
    )
    if not left.same:
        return of_inputs(subject, rule, left, names, help)
    if subject.op.module is not None:
        return None
    there = look(subject, subject.sample, laid_out_op(subject.op, seen.layout))
    if there.verdict == RIGHT:
        return []
    if there.verdict not in (WRONG, RAISED, NOT_FINITE):
        return None
    where = f"inputs are {LAYOUT_WORDS[seen.layout]}"
    return told(subject, rule, there, where, cause="layout-ignored", help=help)


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of each kind and tensor: the first layout that shows it."""
    seen: dict[tuple[str | None, str | None, str | None, str], Finding] = {}
    for finding in findings:
        key = (finding.input, finding.output, finding.cause, finding.severity)
        seen.setdefault(key, finding)
    return list(seen.values())
