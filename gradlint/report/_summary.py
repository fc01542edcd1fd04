"""The end of a report: what failed, what was checked how precisely, and what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradlint.model.report import (
    FAIL_INCONCLUSIVE,
    Check,
    Report,
    Severity,
    TargetReport,
    failing,
)
from gradlint.report import wording
from gradlint.report.text import Page

#: How many reasons for skipping are listed without ``-v``.
REASONS = 6

#: How many rules or targets are named with one reason.
NAMES = 6


def add_summary(page: Page, report: Report) -> None:
    """Add the summary of ``report`` to ``page``."""
    if report.interrupted:
        page.paragraph(wording.INTERRUPTED)
    page.paragraph(outcome(report))
    for remark in remarks(report, named=page.verbose > 0):
        page.paragraph(remark.text, hanging=remark.hanging)
        lines = remark.lines if page.verbose or remark.all else remark.lines[:NAMES]
        for line in lines:
            page.paragraph(line, indent=2, hanging=2)
        if len(lines) < len(remark.lines):
            more = len(remark.lines) - len(lines)
            page.paragraph(f"and {more} more (-v shows them)", indent=2)
    _skipped(page, report)
    page.paragraph(made_by(report))


@dataclass(frozen=True)
class Remark:
    """A sentence below the outcome, and what it lists.

    Args:
        text: the sentence.
        lines: what it is about, a line each.
        hanging: how far further lines of the sentence are indented.
        all: whether all lines are shown, also where room is short.
    """

    text: str
    lines: Sequence[str] = ()
    hanging: int = 0
    all: bool = False


def remarks(report: Report, *, named: bool = False) -> list[Remark]:
    """What stands below the outcome: which findings fail the run, what had to be checked and was
    not, what could not be told, and what was not asked for.

    Args:
        report: the report.
        named: whether to name what was not asked for.
    """
    found = [
        Remark(_lenient(report)),
        Remark(_strict(report)),
        *_baseline(report),
        *_unchecked(report),
        Remark(_inconclusive(report), hanging=2),
        Remark(wording.unwatched(report.targets), hanging=2),
        Remark(_accepted(report), hanging=2),
        Remark(wording.STOPPED if report.stopped else ""),
        *_cache(report, named=named),
        *_left_out(report, named=named),
    ]
    return [remark for remark in found if remark.text]


def made_by(report: Report) -> str:
    """The seed and the time of a run."""
    tail = [f"seed {report.seed}"]
    if report.shard:
        tail.append(f"shard {report.shard}")
    if report.duration_s:
        tail.append(wording.seconds(report.duration_s))
    return ", ".join(tail)


def outcome(report: Report) -> str:
    """The verdicts of all operators, and what was checked how precisely."""
    counts = report.summary()
    if not report.targets:
        return wording.NOTHING_TO_CHECK if report.left_out else wording.NOTHING_CHECKED
    text = wording.operators(counts)
    passed = sum(1 for _ in _passed(report))
    if passed:
        text += f" {wording.plural(passed, 'check')} passed"
        known = resolving_powers(_passed(report))
        if known:
            text += ", resolving power " + "; ".join(
                f"{wording.powers(values)} ({', '.join(place)})" for place, values in known.items()
            )
        fewer = wording.fewer_pairs(check for _, check in _passed(report))
        text += f"; with {', '.join(fewer)}" if fewer else ""
        text += "."
    elif report.exit_code == 5 and not counts["inconclusive"]:
        text += " " + wording.NOTHING_CHECKED
    uncovered = wording.uncovered(counts["uncovered"])
    return f"{text} {uncovered}" if uncovered else text


def _passed(report: Report) -> Iterator[tuple[TargetReport, Check]]:
    """Every check that passed, with its target."""
    for target in report.targets:
        for check in target.checks:
            if check.verdict == "pass":
                yield target, check


def resolving_powers(
    checks: Iterable[tuple[TargetReport, Check]],
) -> dict[tuple[str, ...], tuple[float, float]]:
    """The least and the greatest resolution of ``checks`` by (dtype, device), in the order in which
    they first appear."""
    known: dict[tuple[str, ...], tuple[float, float]] = {}
    for target, check in checks:
        if check.resolution is not None:
            place = _place(target, check)
            least, most = known.get(place, (check.resolution, check.resolution))
            known[place] = min(least, check.resolution), max(most, check.resolution)
    return known


def _place(target: TargetReport, check: Check) -> tuple[str, ...]:
    """Dtype and device of a check: its own, or those of its sample's tensors."""
    dtype, device = check.dtype, check.device
    for sample in target.samples:
        if sample.label == check.sample or check.sample is None:
            for arg in sample.args:
                if arg.shape is not None and (arg.dtype or "").startswith(
                    ("float", "bfloat", "complex")
                ):
                    dtype, device = dtype or arg.dtype, device or arg.device
    return tuple(part for part in (dtype or "float64", device or "cpu") if part)


def _lenient(report: Report) -> str:
    """Mention the findings that do not fail the run."""
    counts = Counter(
        finding.severity
        for target in report.targets
        for finding in target.findings
        # A target that could not be judged fails the run whatever its finding's severity.
        if not (failing(finding, report.fail_on) or finding.baselined)
        and (target.verdict != "error" or finding.severity == "info")
    )
    if not counts:
        return ""
    words = wording.severities(counts)
    do = "does" if counts.total() == 1 else "do"
    return f"{words} below --fail-on {report.fail_on} {do} not fail the run."


def _strict(report: Report) -> str:
    """Say what fails a run in which every operator passes or is inconclusive."""
    counts: Counter[Severity] = Counter()
    unsure = unproven = 0
    for target in report.targets:
        if target.verdict in ("pass", "inconclusive"):
            counts.update(f.severity for f in target.findings if failing(f, report.fail_on))
            unsure += target.verdict == "inconclusive"
            unproven += target.uncovered
    words = [wording.severities(counts)] if counts else []
    unsure = unsure if report.fail_on in FAIL_INCONCLUSIVE else 0
    if unsure:
        words.append(wording.plural(unsure, "inconclusive operator"))
    unproven = unproven if report.fail_on == "uncovered" else 0
    if unproven:
        words.append(f"{wording.plural(unproven, 'operator')} with code that never ran")
    if not words:
        return ""
    do = "fails" if counts.total() + unsure + unproven == 1 else "fail"
    return f"{' and '.join(words)} {do} the run (--fail-on {report.fail_on})."


def _baseline(report: Report) -> Iterator[Remark]:
    """What the baseline accepts, and what of it is gone."""
    use = report.baseline
    if use is None:
        return
    if use.accepted:
        verb = "is" if use.accepted == 1 else "are"
        do = "does" if use.accepted == 1 else "do"
        yield Remark(
            f"{wording.plural(use.accepted, 'finding')} {verb} {wording.IN_BASELINE} ({use.path}) "
            f"and {do} not fail the run."
        )
    if use.gone:
        count = wording.plural(len(use.gone), "entry", "entries")
        verb = "appears" if len(use.gone) == 1 else "appear"
        yield Remark(
            f"{count} of the baseline no longer {verb}; `gradlint baseline prune` removes "
            f"{'it' if len(use.gone) == 1 else 'them'}:",
            [wording.baseline_entry(entry) for entry in use.gone],
        )


def _cache(report: Report, *, named: bool) -> Iterator[Remark]:
    """What was read from the cache of verdicts, what was not kept in it, and what was amiss."""
    use = report.cache
    if use is None:
        return
    if use.read:
        verb = "verdict was" if use.read == 1 else "verdicts were"
        yield Remark(
            f"{use.read} of {wording.plural(len(report.targets), 'operator')}: the {verb} read "
            f"from the cache ({use.path}), as nothing changed on which "
            f"{'it depends' if use.read == 1 else 'they depend'}.",
            hanging=2,
        )
    if use.not_kept:
        count = wording.plural(len(use.not_kept), "verdict")
        verb = "is" if len(use.not_kept) == 1 else "are"
        yield Remark(
            f"{count} {verb} not kept in the cache{':' if named else ' (-v shows why).'}",
            [f"{name}: it {why}" for name, why in use.not_kept.items()] if named else [],
        )
    yield from (Remark(note) for note in use.notes)


def _unchecked(report: Report) -> Iterator[Remark]:
    """The operators that had to be checked and were not."""
    count = len(report.unchecked)
    if count:
        yield Remark(
            f"{wording.plural(count, 'operator')} under --require-coverage "
            f"{'is' if count == 1 else 'are'} checked by nothing, which fails the run:",
            [f"{item.location}  {item.name} ({item.kind})" for item in report.unchecked],
            all=True,
        )


def _left_out(report: Report, *, named: bool) -> Iterator[Remark]:
    """What was not asked for."""
    for why, names in report.left_out.items():
        more = f": {_some(names)}" if named else ""
        count = wording.plural(len(names), "operator")
        yield Remark(f"Left out, {why}: {count}{more}.", hanging=2)


def _inconclusive(report: Report) -> str:
    unsure = [
        (target.target, wording.named(check))
        for target in report.targets
        for check in target.checks
        if check.verdict == "inconclusive"
    ]
    if not unsure:
        return ""
    count = wording.plural(len(unsure), "check")
    lenient = "" if report.fail_on in FAIL_INCONCLUSIVE else " --fail-on inconclusive fails them."
    places = len({target for target, _ in unsure})
    return (
        f"Inconclusive, {wording.NOT_PASSED}: {count} "
        f"({wording.codes(code for _, code in unsure)}) of "
        f"{wording.plural(places, 'operator')}.{lenient}"
    )


def _accepted(report: Report) -> str:
    """What was found and is accepted where it stands."""
    found = [
        f"{item.code} {check.name}".rstrip()
        for target in report.targets
        for check in target.checks
        for item in check.accepted
    ]
    if not found:
        return ""
    verb = "is" if len(found) == 1 else "are"
    return (
        f"{wording.plural(len(found), 'finding')} {verb} accepted by comments, operators or "
        f"specs ({_some(sorted(set(found)))}); -v shows why."
    )


def skipped_lines(report: Report, *, everything: bool = True) -> list[str]:
    """What was skipped and why, a reason a line; what most checks share comes first.

    Args:
        report: the report.
        everything: whether to tell what a user can do nothing about, too. What can be done
            something about is what was asked for and is not here, what applies and could not run,
            and why nothing of a target ran.
    """
    groups: dict[str, Counter[str]] = {}
    for target in report.targets:
        for check in target.checks:
            if check.verdict == "skipped" and (
                everything or check.could_not_run or not target.judged
            ):
                reason = check.note or "no reason given"
                groups.setdefault(reason, Counter())[wording.named(check)] += 1
    lines = [
        f"{wording.plural(sum(found.values()), 'check')} ({_some(sorted(found))}): {reason}"
        for reason, found in sorted(groups.items(), key=lambda item: -sum(item[1].values()))
    ]
    named: dict[str, list[str]] = {}
    for what, why in report.skipped.items():
        named.setdefault(why, []).append(what)
    for why, names in named.items():
        told = len(names) == 1 and names[0] in why
        lines.append(why if told else f"{_some(names)}: {why}")
    return lines


def _skipped(page: Page, report: Report) -> None:
    lines = skipped_lines(report, everything=page.verbose > 0)
    if not lines:
        return
    if len(lines) == 1:
        page.paragraph(f"Skipped: {lines[0]}", hanging=2)
        return
    page.line("Skipped:")
    limit = len(lines) if page.verbose else REASONS
    for line in lines[:limit]:
        page.paragraph(line, indent=2, hanging=2)
    if len(lines) > limit:
        left = wording.plural(len(lines) - limit, "more reason")
        page.paragraph(f"and {left} (-v shows them)", indent=2)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES])
    return shown if len(names) <= NAMES else f"{shown} and {len(names) - NAMES} more"
