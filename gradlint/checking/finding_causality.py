"""Which findings follow from which: a fault is reported once, with its consequences under it."""

from __future__ import annotations

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


def _root(finding: Finding, findings: Iterable[Finding]) -> Finding | None:
    """The deepest finding that ``finding`` follows from; None where it stands for itself."""
    depths = list(ROOTS)
    depth = depths.index(finding.code) if finding.code in ROOTS else len(depths)
    candidates = [
        other
        for other in findings
        if finding.code in ROOTS.get(other.code, ())
        and depths.index(other.code) < depth
        and (other.severity != "info" or finding.severity == "info")
        and (finding.input is None or other.input is None or finding.input == other.input)
    ]
    return min(candidates, key=lambda other: depths.index(other.code), default=None)
