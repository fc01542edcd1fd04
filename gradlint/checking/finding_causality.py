"""Which findings follow from which: a fault is reported once, with its consequences under it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradlint.model.report import Finding
from gradlint.rules.catalogue import CATALOGUE

#: Root → its consequences, deepest roots first: a finding follows the first root that was found
#: too.
ROOTS: dict[str, tuple[str, ...]] = {
    rule.code: implies.codes
    for rule, implies in sorted(
        ((rule, rule.implies) for rule in CATALOGUE if rule.implies is not None),
        key=lambda pair: pair[1].depth,
    )
}

#: Inputs of another kind than the sample's, made by a check.
BEYOND = frozenset({"other-rank", "no-dimensions", "empty", "left-out", "special", "extreme"})

#: A gradient that is wrong at the sample, and what it explains where that is seen only at inputs of
#: another kind: a missing mask or epsilon also divides by zero where all elements are zero.
AT_THE_SAMPLE, ONLY_ELSEWHERE = "GL401", ("GL302",)

#: The cause of a gradient that is right where the same inputs are contiguous, and the rules that
#: say so of the layout itself.
LAYOUT, OF_LAYOUTS = "layout-ignored", ("GL703", "GL704")

#: A saved tensor that backward overwrites: what it computes from then on is not at the sample, and
#: no gradient that it returns can be judged apart from that.
OVERWRITTEN = "GL603"

#: The rule on identical calls that differ: where outputs do, gradients have to.
REPEATED = "GL606"

#: What tells the findings of one fault on several inputs apart: names, indices and numbers.
_PARTICULARS = re.compile(r"`[^`]*`|\[[\d, ]*\]|\([^)]*elements\)|\bto [\d.e+-]+ in .*|\d+")

_WORST = ("error", "warning", "info")


def grouped(findings: Sequence[Finding]) -> list[Finding]:
    """``findings`` with each root before its consequences, which name it in ``follows``; worst
    first, else in the order in which they were found."""
    roots: list[Finding] = []
    below: dict[int, list[Finding]] = {}
    for finding in findings:
        nearest = _root(finding, findings)
        if nearest is None:
            roots.append(finding)
            continue
        deepest = nearest
        while (deeper := _root(deepest, findings)) is not None:  # each is deeper than the last
            deepest = deeper
        below.setdefault(id(deepest), []).append(replace(finding, follows=nearest.code))
    groups = [[root, *below.get(id(root), ())] for root in roots]
    groups.sort(key=lambda group: min(_WORST.index(one.severity) for one in group))
    return [one for group in groups for one in group]


def _root(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The deepest finding that ``finding`` follows from; None where it stands for itself."""
    depths = list(ROOTS)
    depth = depths.index(finding.code) if finding.code in ROOTS else len(depths)
    candidates = [
        other
        for other in findings
        if finding.code in ROOTS.get(other.code, ())
        and depths.index(other.code) < depth
        and _as_grave(other, finding)
        and (finding.input is None or other.input is None or finding.input == other.input)
    ]
    deepest = min(candidates, key=lambda other: depths.index(other.code), default=None)
    return deepest or _nearer(finding, findings) or _same_fault(finding, findings)


def _as_grave(root: Finding, finding: Finding) -> bool:
    """Whether ``root`` may explain ``finding``: a note explains no failure, and what shows only at
    inputs of another kind nothing graver that shows at the sample."""
    if root.grounds.where in BEYOND and finding.grounds.where not in BEYOND:
        return _WORST.index(root.severity) <= _WORST.index(finding.severity)
    return root.severity != "info" or finding.severity == "info"


def _nearer(finding: Finding, findings: Iterable[Finding]) -> Finding | None:
    """The finding that is nearer to the cause, whatever the rules imply elsewhere: what shows at
    the sample before what shows beyond it, the layout before the gradient that it spoils, a saved
    tensor that is overwritten before the gradients computed from it, and an output that changes
    before its gradients."""
    elsewhere = finding.code in ONLY_ELSEWHERE and finding.grounds.where in BEYOND
    spoilt = finding.code == AT_THE_SAMPLE and finding.cause == LAYOUT
    changes = finding.code == REPEATED and finding.input is not None
    for other in findings:
        at_sample = other.code == AT_THE_SAMPLE and other.grounds.where not in BEYOND
        overwritten = finding.code == AT_THE_SAMPLE and other.code == OVERWRITTEN
        leads = (elsewhere and at_sample) or (spoilt and other.code in OF_LAYOUTS) or overwritten
        leads = leads or (changes and other.code == REPEATED and other.input is None)
        if leads and _as_grave(other, finding):
            return other
    return None


def _same_fault(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The first finding on the same fault in another input: the same rule says the same there, and
    either a cause is known or it was seen beyond the sample."""
    if finding.input is None or not (finding.cause or finding.grounds.where in BEYOND):
        return None
    for other in findings:
        if other is finding:
            return None
        if _fault(other) == _fault(finding) and _as_grave(other, finding):
            return other if other.input not in (None, finding.input) else None
    return None


def _fault(finding: Finding) -> tuple[object, ...]:
    """What is the same in the findings of one fault on several inputs."""
    place = finding.location.file if finding.location else None
    own = re.compile(rf"\b{re.escape(finding.input or '')}\b")
    words = (
        own.sub("", _PARTICULARS.sub("", text)) for text in (finding.message, finding.cause_text)
    )
    return finding.code, finding.severity, finding.sample, finding.cause, place, *words
