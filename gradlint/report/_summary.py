"""The end of a report: what failed, what was checked how precisely, and what was skipped."""

from __future__ import annotations

from collections import Counter

from gradlint.model.report import FAIL_INCONCLUSIVE, Check, Report, TargetReport, failing
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
    page.paragraph(_verdict(report))
    _lenient(page, report)
    _strict(page, report)
    _baseline(page, report)
    _unchecked(page, report)
    _inconclusive(page, report)
    unwatched = wording.unwatched(report.targets)
    if unwatched:
        page.paragraph(unwatched, hanging=2)
    _accepted(page, report)
    _left_out(page, report)
    _skipped(page, report)
    tail = [f"seed {report.seed}"]
    if report.shard:
        tail.append(f"shard {report.shard}")
    if report.duration_s:
        tail.append(wording.seconds(report.duration_s))
    page.paragraph(", ".join(tail))


def _verdict(report: Report) -> str:
    counts = report.summary()
    if not report.targets:
        return wording.NOTHING_TO_CHECK if report.left_out else wording.NOTHING_CHECKED
    text = wording.operators(counts)
    passed = [
        (target, check)
        for target in report.targets
        for check in target.checks
        if check.verdict == "pass"
    ]
    if passed:
        text += f" {wording.plural(len(passed), 'check')} passed"
        known = resolving_powers(passed)
        if known:
            text += ", resolving power " + "; ".join(
                f"{wording.powers(values)} ({', '.join(place)})" for place, values in known.items()
            )
        fewer = wording.fewer_pairs(check for _, check in passed)
        text += f"; with {', '.join(fewer)}" if fewer else ""
        text += "."
    elif report.exit_code == 5 and not counts["inconclusive"]:
        text += " " + wording.NOTHING_CHECKED
    uncovered = wording.uncovered(counts["uncovered"])
    return f"{text} {uncovered}" if uncovered else text


def resolving_powers(
    checks: list[tuple[TargetReport, Check]],
) -> dict[tuple[str, ...], list[float]]:
    """Resolutions of ``checks`` by (dtype, device), in the order in which they first appear."""
    known: dict[tuple[str, ...], list[float]] = {}
    for target, check in checks:
        if check.resolution is not None:
            known.setdefault(_place(target, check), []).append(check.resolution)
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


def _lenient(page: Page, report: Report) -> None:
    """Mention the findings that do not fail the run."""
    counts = Counter(
        finding.severity
        for target in report.targets
        for finding in target.findings
        # A target that could not be judged fails the run whatever its finding's severity.
        if not (failing(finding, report.fail_on) or finding.baselined)
        and (target.verdict != "error" or finding.severity == "info")
    )
    if counts:
        words = wording.severities(counts)
        do = "does" if counts.total() == 1 else "do"
        page.paragraph(f"{words} below --fail-on {report.fail_on} {do} not fail the run.")


def _strict(page: Page, report: Report) -> None:
    """Say what fails a run in which every operator passes or is inconclusive."""
    judged = [target for target in report.targets if target.verdict in ("pass", "inconclusive")]
    counts = Counter(
        finding.severity
        for target in judged
        for finding in target.findings
        if failing(finding, report.fail_on)
    )
    words = [wording.severities(counts)] if counts else []
    unsure = sum(target.verdict == "inconclusive" for target in judged)
    unsure = unsure if report.fail_on in FAIL_INCONCLUSIVE else 0
    if unsure:
        words.append(wording.plural(unsure, "inconclusive operator"))
    unproven = sum(target.uncovered for target in judged) if report.fail_on == "uncovered" else 0
    if unproven:
        words.append(f"{wording.plural(unproven, 'operator')} with code that never ran")
    if words:
        do = "fails" if counts.total() + unsure + unproven == 1 else "fail"
        page.paragraph(f"{' and '.join(words)} {do} the run (--fail-on {report.fail_on}).")


def _baseline(page: Page, report: Report) -> None:
    """What the baseline accepts, and what of it is gone."""
    use = report.baseline
    if use is None:
        return
    if use.accepted:
        verb = "is" if use.accepted == 1 else "are"
        do = "does" if use.accepted == 1 else "do"
        page.paragraph(
            f"{wording.plural(use.accepted, 'finding')} {verb} {wording.IN_BASELINE} ({use.path}) "
            f"and {do} not fail the run."
        )
    if use.gone:
        count = wording.plural(len(use.gone), "entry", "entries")
        verb = "appears" if len(use.gone) == 1 else "appear"
        page.paragraph(
            f"{count} of the baseline no longer {verb}; `gradlint baseline prune` removes "
            f"{'it' if len(use.gone) == 1 else 'them'}:"
        )
        _listed(page, [wording.baseline_entry(entry) for entry in use.gone])


def _left_out(page: Page, report: Report) -> None:
    """What was not asked for; and that the run ended early."""
    if report.stopped:
        page.paragraph(wording.STOPPED)
    for why, names in report.left_out.items():
        more = f": {_some(names)}" if page.verbose else ""
        page.paragraph(
            f"Left out, {why}: {wording.plural(len(names), 'operator')}{more}.", hanging=2
        )


def _unchecked(page: Page, report: Report) -> None:
    """The operators that had to be checked and were not."""
    if not report.unchecked:
        return
    count = len(report.unchecked)
    page.paragraph(
        f"{wording.plural(count, 'operator')} under --require-coverage "
        f"{'is' if count == 1 else 'are'} checked by nothing, which fails the run:"
    )
    for item in report.unchecked:
        page.line(f"  {item.location}  {item.name} ({item.kind})")


def _listed(page: Page, lines: list[str]) -> None:
    """``lines``, without ``-v`` the first of them."""
    limit = len(lines) if page.verbose else NAMES
    for line in lines[:limit]:
        page.paragraph(line, indent=2, hanging=2)
    if len(lines) > limit:
        page.paragraph(f"and {len(lines) - limit} more (-v shows them)", indent=2)


def _inconclusive(page: Page, report: Report) -> None:
    unsure = [
        (target.target, wording.named(check))
        for target in report.targets
        for check in target.checks
        if check.verdict == "inconclusive"
    ]
    if unsure:
        count = wording.plural(len(unsure), "check")
        lenient = (
            "" if report.fail_on in FAIL_INCONCLUSIVE else " --fail-on inconclusive fails them."
        )
        places = len({target for target, _ in unsure})
        page.paragraph(
            f"Inconclusive, {wording.NOT_PASSED}: {count} "
            f"({wording.codes(code for _, code in unsure)}) of "
            f"{wording.plural(places, 'operator')}.{lenient}",
            hanging=2,
        )


def _accepted(page: Page, report: Report) -> None:
    """What was found and is accepted where it stands."""
    found = [
        f"{item.code} {check.name}".rstrip()
        for target in report.targets
        for check in target.checks
        for item in check.accepted
    ]
    if found:
        verb = "is" if len(found) == 1 else "are"
        page.paragraph(
            f"{wording.plural(len(found), 'finding')} {verb} accepted by comments, operators or "
            f"specs ({_some(sorted(set(found)))}); -v shows why.",
            hanging=2,
        )


def _skipped(page: Page, report: Report) -> None:
    """What did not run. Without ``-v`` only what a user can do something about: what was asked for
    and is not here, what applies and could not run, and why nothing of a target ran."""
    all_of = page.verbose > 0
    groups: dict[str, Counter[str]] = {}
    for target in report.targets:
        for check in target.checks:
            if check.verdict == "skipped" and (all_of or check.could_not_run or not target.judged):
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
