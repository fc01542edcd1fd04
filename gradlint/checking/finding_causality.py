"""Which findings are consequences of which: a broken op is told once, its consequences under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradlint.model.report import Finding

_REPEATED = ("GL605", "GL606", "GL608", "GL609", "GL610")
_VALUES = ("GL301", "GL302", "GL401", "GL402", "GL403", "GL404", "GL405", "GL501", "GL502")
_LAYOUTS = ("GL701", "GL702", "GL703", "GL704", "GL705", "GL706", "GL707")
_DEVICES = ("GL801", "GL802", "GL803", "GL804")
_ELSEWHERE = (*_DEVICES, "GL901", "GL902", "GL903", "GL904", "GL905", "GL906")

#: Root → what it brings about, deepest roots first: a finding follows the first of these that was
#: found beside it.
ROOTS: dict[str, tuple[str, ...]] = {
    # Memory that nobody wrote is different at every look.
    "GL607": (*_REPEATED, *_VALUES, *_LAYOUTS, *_ELSEWHERE, "GL110"),
    # An input that was changed is another point for whatever comes next.
    "GL601": ("GL603", *_REPEATED, *_VALUES, "GL703", "GL704", *_ELSEWHERE, "GL110"),
    # Writing to grad_output raises where it is expanded, and spoils it for a second use.
    "GL602": (
        *("GL603", *_REPEATED, "GL405", "GL501", "GL502"),
        *("GL701", "GL702", "GL704", "GL903", "GL110"),
    ),
    "GL603": (*_REPEATED, "GL501", "GL502"),
    # What a call leaves behind is met by every later call.
    "GL608": ("GL605", "GL606", "GL609", "GL610", *_VALUES, *_LAYOUTS, *_ELSEWHERE, "GL110"),
    "GL610": ("GL605", "GL606", "GL609", *_VALUES, *_LAYOUTS, *_ELSEWHERE, "GL110"),
    "GL606": ("GL605", "GL609", *_VALUES, *_LAYOUTS, *_ELSEWHERE, "GL110"),
    "GL605": ("GL609", "GL903"),
    # Without a gradient there is none in any subset, and none under a transform.
    "GL103": ("GL110", "GL502", "GL902", "GL901", "GL903"),
    "GL110": ("GL902",),
    # What is wrong at the sample is wrong elsewhere.
    "GL302": ("GL402", "GL501", "GL502", "GL705", "GL706", "GL707"),
    "GL405": ("GL501", "GL502"),
    "GL401": ("GL402", "GL403", "GL404", "GL501", "GL502", "GL706", "GL707", "GL801"),
    # What reads memory without looking at strides does so in every layout.
    "GL701": ("GL702", "GL704", "GL609", "GL706", "GL707", "GL903"),
    "GL703": ("GL704", "GL903"),
    "GL705": ("GL706",),
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
