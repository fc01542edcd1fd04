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


class RankedFindings:
    """Every finding of a report: the worst severity first, roots before what follows from them,
    otherwise in the order of the report.

    Only their order is held. A target is read again when its findings have their turn.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._order = sorted(
            (_rank(finding), finding.follows is not None, number, position)
            for number, target in enumerate(report.targets)
            for position, finding in enumerate(target.findings)
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self._order)

    def __iter__(self) -> Iterator[Ranked]:
        """One after the other."""
        last, target, known = -1, None, []
        for _, _, number, position in self._order:
            if target is None or number != last:
                last, target = number, self._report.targets[number]
                known = identities(target)
            yield Ranked(target, target.findings[position], known[position])

    def places(self, most: int) -> set[tuple[int, int]]:
        """The number of the target, and of the finding within it, of the first ``most``."""
        return {(number, position) for _, _, number, position in self._order[:most]}


def ranked(report: Report) -> RankedFindings:
    """Every finding of ``report``, see :class:`RankedFindings`."""
    return RankedFindings(report)


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
