"""The reports of shards as the report of one run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean
from gradlint.base.text import short_text
from gradlint.model.report import BaselineUse, CacheUse, FailOn, Report, TargetReport
from gradlint.report.read import Gather

#: Settings that say nothing of what is checked: where and how fast a shard runs, which part of the
#: run it is, and what is told of it.
_OWN_TO_A_SHARD = frozenset(("cache", "cluster", "debug", "fail_on", "jobs", "memory_mb", "shard"))

#: Shards of a run (heuristic: what is larger is no number of machines).
_MOST_SHARDS = 100_000

#: Differences that are told of two files.
_TOLD = 4


@dataclass(frozen=True)
class _Place:
    """Where a target is: it may be read from a file whenever it is asked for."""

    file: str
    report: Report
    number: int
    position: list[int]

    @property
    def target(self) -> TargetReport:
        """It."""
        return self.report.targets[self.number]


def merge_reports(
    reports: Sequence[tuple[str, Report]], fail_on: FailOn | None = None, gather: Gather = list
) -> Report:
    """One report of all targets.

    Args:
        reports: file and report of each shard.
        fail_on: what fails the run; None for what the shards say themselves.
        gather: what holds the targets; by default memory.

    Raises:
        GradlintError: the reports are not of one run, or a target is in two of them.
    """
    (first_file, first), *others = reports
    for file, report in others:
        _check_same_run(first_file, first, file, report, fail_on)
    places = _each_once(reports)
    _check_complete(reports)
    merged = Report(
        targets=gather(place.target for place in _in_order(places)),
        seed=first.seed,
        environment=_joined([report.environment for _, report in reports]),
        gradlint=first.gradlint,
        duration_s=sum(report.duration_s for _, report in reports),
        fail_on=fail_on or first.fail_on,
        interrupted=any(report.interrupted for _, report in reports),
        settings={key: value for key, value in first.settings.items() if key != "shard"},
        # What is of the whole run, every shard says: a mistake of usage, for one.
        errors=list(dict.fromkeys(error for _, report in reports for error in report.errors)),
        stopped=any(report.stopped for _, report in reports),
        shard=first.shard if not others else "",
        baseline=_baseline([report for _, report in reports]),
        cache=_cache([report for _, report in reports]),
        # What one shard checks is checked.
        unchecked=[
            item for item in first.unchecked if all(item in other.unchecked for _, other in others)
        ],
    )
    checked = {target.target for target in merged.targets}
    for _, report in reports:
        merged.skipped.update(report.skipped)
    merged.left_out = _left_out([report for _, report in reports], checked)
    return merged


def _left_out(reports: Sequence[Report], checked: Collection[str]) -> dict[str, list[str]]:
    """What no shard checked, and why: what one leaves to the others is not left out."""
    found: dict[str, dict[str, None]] = {}
    for report in reports:
        for why, names in report.left_out.items():
            found.setdefault(why, {}).update(dict.fromkeys(names))
    kept = {why: [name for name in names if name not in checked] for why, names in found.items()}
    return {why: names for why, names in kept.items() if names}


def _in_order(places: list[_Place]) -> list[_Place]:
    """``places`` in the order of one run, where their targets say their positions."""
    if all(place.position for place in places):
        places.sort(key=lambda place: place.position)
    return places


def _check_complete(reports: Sequence[tuple[str, Report]]) -> None:
    """A gate must not pass because a shard is missing. One by itself may be rendered."""
    shards = {report.shard: file for file, report in reports}
    if len(reports) == 1 or set(shards) == {""}:
        return
    total = next(shard for shard in shards if shard).rpartition("/")[2]
    if not total.isdigit() or int(total) > _MOST_SHARDS:
        return
    missing = [f"{n}/{total}" for n in range(1, int(total) + 1) if f"{n}/{total}" not in shards]
    if missing:
        raise GradlintError(
            f"{'shard' if len(missing) == 1 else 'shards'} {', '.join(missing[:_TOLD])}"
            f"{f' and {len(missing) - _TOLD} more' if len(missing) > _TOLD else ''} "
            f"{'is' if len(missing) == 1 else 'are'} missing",
            place="report",
            hint="name the files of all shards of the run; one file by itself is rendered as it is",
        )


def _check_same_run(
    first_file: str, first: Report, file: str, report: Report, fail_on: FailOn | None
) -> None:
    differ = [
        ("gradlint", first.gradlint, report.gradlint),
        ("seed", first.seed, report.seed),
    ]
    names = [*first.settings, *(key for key in report.settings if key not in first.settings)]
    differ += [
        (key.replace("_", "-"), first.settings.get(key), report.settings.get(key))
        for key in names
        if key not in _OWN_TO_A_SHARD and key != "seed"
    ]
    if fail_on is None:
        differ.append(("fail-on", first.fail_on, report.fail_on))
    told = [
        f"{name} {_text(theirs)} instead of {_text(ours)}"
        for name, ours, theirs in differ
        if ours != theirs
    ]
    if not told:
        return
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    hint = (
        "give all shards of a run one --seed" if told[0].startswith("seed ") else ""
    ) or "shards of one run have the same gradlint, seed and settings; render others one by one"
    raise GradlintError(
        f"is not of the same run as {clean(first_file)}: {'; '.join(told[:_TOLD])}{more}",
        place=clean(file),
        hint=hint,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else short_text(value)


def _each_once(reports: Sequence[tuple[str, Report]]) -> list[_Place]:
    """The targets of all reports. A module that must be imported to list its operators is imported
    for every shard; where that fails, all of them say so."""
    found: list[_Place] = []
    seen: dict[str, _Place] = {}
    for file, report in reports:
        before = dict(seen)
        for number, target in enumerate(report.targets):
            known = before.get(target.target)
            if known is None:
                seen[target.target] = place = _Place(file, report, number, target.position)
                found.append(place)
            elif not _failed_alike(known.target, target):
                raise GradlintError(
                    f"{clean(target.target)} is in {clean(known.file)}, too",
                    place=clean(file),
                    hint="every target belongs to one shard: name each file once",
                )
    return found


def _failed_alike(first: TargetReport, second: TargetReport) -> bool:
    """Whether both say that nothing of the target could be checked, for the same reason."""
    codes = [[finding.code for finding in target.findings] for target in (first, second)]
    checked = first.checks or second.checks or first.samples or second.samples
    return first.verdict == second.verdict == "error" and codes[0] == codes[1] and not checked


def _baseline(reports: Sequence[Report]) -> BaselineUse | None:
    """What came of one baseline in all shards."""
    uses = [report.baseline for report in reports if report.baseline is not None]
    if not uses:
        return None
    gone = [entry for use in uses for entry in use.gone]
    distinct = [entry for number, entry in enumerate(gone) if entry not in gone[:number]]
    return BaselineUse(uses[0].path, sum(use.accepted for use in uses), distinct)


def _cache(reports: Sequence[Report]) -> CacheUse | None:
    """What came of the caches of all shards."""
    uses = [report.cache for report in reports if report.cache is not None]
    if not uses:
        return None
    made = CacheUse("; ".join(dict.fromkeys(use.path for use in uses)))
    for use in uses:
        made.read += use.read
        made.kept += use.kept
        made.not_kept.update(use.not_kept)
        made.notes += [note for note in use.notes if note not in made.notes]
    return made


def _joined(environments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the machines of all shards say of themselves; what differs is listed."""
    joined: dict[str, Any] = {}
    for key in dict.fromkeys(key for one in environments for key in one):
        values = [one[key] for one in environments if key in one]
        distinct = [item for n, item in enumerate(values) if item not in values[:n]]
        joined[key] = distinct[0] if len(distinct) == 1 else "; ".join(map(_text, distinct))
    return joined
