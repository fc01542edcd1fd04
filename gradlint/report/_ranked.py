"""Findings of a whole report, worst first, as formats for programs list them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradlint.model.fingerprint import Identity, identities
from gradlint.model.report import SEVERITIES, Finding, Location, Report, TargetReport

#: Endings of targets and of parts of targets that name a file.
_FILES = (".py", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Ranked:
    """One finding.

    Args:
        target: what it was found in.
        finding: itself.
        identity: what tells it from all others, in this run and in the next.
    """

    target: TargetReport
    finding: Finding
    identity: Identity

    @property
    def place(self) -> Location | None:
        """Where to point at, see :func:`place_of`."""
        return place_of(self.target, self.finding)


def ranked(report: Report) -> list[Ranked]:
    """Every finding: the worst severity first, roots before what follows from them, otherwise in
    the order of the report."""
    found = [item for target in report.targets for item in _of(target)]
    found.sort(key=lambda item: (_rank(item.finding), item.finding.follows is not None))
    return found


def _of(target: TargetReport) -> Iterator[Ranked]:
    for finding, identity in zip(target.findings, identities(target), strict=True):
        yield Ranked(target, finding, identity)


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def place_of(target: TargetReport, finding: Finding | None = None) -> Location | None:
    """The place of ``finding``, else that of its target, else the file that the target names; None
    where there is none of them, as for a registered operator."""
    if finding is not None and finding.location is not None:
        return finding.location
    if target.location is not None:
        return target.location
    path, _, name = target.target.partition(":")
    named = target.target if target.target.endswith(_FILES) else path if name else ""
    return Location(named, 1) if named.endswith(_FILES) else None
