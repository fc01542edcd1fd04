"""The report for people: in the style of a compiler, target by target, then the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from gradlint.base.terminal import lines_of
from gradlint.model.report import (
    Finding,
    Location,
    Report,
    SampleReport,
    TargetReport,
    TorchVerdict,
)
from gradlint.report import wording
from gradlint.report._finding import add_finding
from gradlint.report._summary import add_summary
from gradlint.report.table import table
from gradlint.report.text import Page

#: Samples of a target that are listed without ``-v``.
SAMPLES = 4

#: The rule of a target that can't be loaded, and how many of those that can't for the same reason
#: are named without ``-v``.
NOT_LOADED, LIKEWISE = "GL001", 8

#: Things not tried that are listed without ``-v``.
NOT_TRIED = 8


def add_report(page: Page, report: Report) -> None:
    """Add the whole of ``report`` to ``page``."""
    for _ in report_steps(page, report):
        pass


def report_steps(page: Page, report: Report) -> Iterator[None]:
    """Add the whole of ``report`` to ``page``, finding by finding."""
    alike = {} if page.verbose else _not_loaded_alike(report.targets)
    left = {number for others in alike.values() for number, _ in others}
    for number, target in enumerate(report.targets):
        if number in left:
            continue
        if _one_line(target) and not page.verbose:
            yield from _passing(page, target)
        else:
            page.blank()
            yield from _target(page, target)
            if others := alike.get(number):
                _likewise(page, [name for _, name in others])
            page.blank()
    page.blank()
    add_summary(page, report)


def _not_loaded_alike(targets: Iterable[TargetReport]) -> dict[int, list[tuple[int, str]]]:
    """The number of each target that can't be loaded → numbers and names of the later ones that
    can't for the same reason at the same place: one package that is missing is said once, not once
    an operator."""
    first: dict[tuple[str, Location | None], int] = {}
    found: dict[int, list[tuple[int, str]]] = {}
    for number, target in enumerate(targets):
        if len(target.findings) != 1 or target.findings[0].code != NOT_LOADED:
            continue
        (finding,) = target.findings
        original = str(finding.evidence.get("original", ""))
        known = first.setdefault((original, finding.location), number)
        if original and known != number:
            found.setdefault(known, []).append((number, target.target))
    return found


def _likewise(page: Page, others: Sequence[str]) -> None:
    """The targets that can't be loaded for the reason that was just given."""
    names = [page.clean(other) for other in others]
    shown = names[:LIKEWISE]
    more = len(names) - len(shown)
    words = f"{wording.plural(len(names), 'more operator')}: {', '.join(shown)}"
    page.row("likewise", words + (f" and {more} others (-v shows them)" if more else ""))


def _one_line(target: TargetReport) -> bool:
    return target.verdict == "pass" and all(f.severity == "info" for f in target.findings)


def _verdict_line(page: Page, target: TargetReport, *parts: str) -> None:
    text = Text().append(f"{target.verdict:<5}", wording.STYLES.get(target.verdict, "bold"))
    text.append("  ").append(page.clean(target.target), "bold")
    for part in parts:
        if part:
            text.append("  ").append(page.clean(part))
    page.paragraph(text, hanging=7)


def _passing(page: Page, target: TargetReport) -> Iterator[None]:
    """Verdict, inputs and resolving power in one line; then what a reader must not miss."""
    shown = ""
    if target.samples:
        first = target.samples[0]
        shown = f"{wording.arguments(first, dtype=False)} ({wording.origin(first)})"
        more = len(target.samples) - 1
        if more:
            shown += f" and {wording.plural(more, 'more sample')}"
    counts = wording.verdict_counts(target.checks, [])
    _verdict_line(page, target, shown, counts)
    _confirmation(page, target)
    _not_tried(page, target)
    for name, verdict in (("gradcheck", target.gradcheck), ("gradgradcheck", target.gradgradcheck)):
        if verdict is not None and verdict.verdict == "fail":
            page.row(name, wording.torch_verdict(verdict, False), column=13)
    for finding in target.findings:
        add_finding(page, finding, target)
        yield
    yield


def _target(page: Page, target: TargetReport) -> Iterator[None]:
    counts = wording.verdict_counts(target.checks, target.findings)
    kind = "" if target.kind == "unknown" else f"({target.kind})"
    time = wording.seconds(target.duration_s) if target.duration_s else ""
    _verdict_line(page, target, kind, "; ".join(part for part in (counts, time) if part))
    _samples(page, target)
    for note in target.notes:
        page.row("note", lines_of(note, page.ascii))
    for finding in target.findings:
        if finding.follows is None or page.verbose:
            page.blank()
        add_finding(page, finding, target)
        yield
    if target.findings:
        page.blank()
    _inconclusive(page, target)
    _confirmation(page, target)
    _torch(page, target)
    _not_tried(page, target)
    if page.verbose:
        _tried(page, target)
        _predicted(page, target)
        _anatomy(page, target)
        _powers(page, target)
        _checks(page, target)


def _samples(page: Page, target: TargetReport) -> None:
    named = {finding.sample for finding in target.findings}
    shown = [
        sample
        for index, sample in enumerate(target.samples)
        if page.verbose or index < SAMPLES or sample.label in named
    ]
    for sample in shown:
        lines = [_sample_line(sample, several=len(target.samples) > 1)]
        lines += [line for note in sample.notes for line in lines_of(note, page.ascii)]
        page.row("inputs", lines)
    if len(shown) < len(target.samples):
        left = wording.plural(len(target.samples) - len(shown), "more sample")
        page.paragraph(f"and {left} (-v shows them)", indent=page.value_indent())


def _sample_line(sample: SampleReport, several: bool) -> str:
    head = wording.origin(sample)
    if several and sample.label != sample.origin:
        named = sample.label.startswith(sample.origin)  # as in ``inferred [float32]``
        head = sample.label if named else f"{head}, {sample.label}"
    return f"{head}: {wording.arguments(sample)}"


def _inconclusive(page: Page, target: TargetReport) -> None:
    unsure: dict[tuple[str, str, str], list[str]] = {}
    for check in target.checks:
        if check.verdict == "inconclusive":
            where = [part for part in (check.sample, check.dtype, check.device) if part]
            key = (wording.named(check), check.note, check.help)
            unsure.setdefault(key, []).append(", ".join(where))
    for (code, note, step), places in unsure.items():
        words = f"{code}, {wording.NOT_PASSED}"
        distinct = [place for place in dict.fromkeys(places) if place]
        if distinct:
            words += f" ({'; '.join(distinct)})"
        lines = [words + (f": {note}" if note else "")]
        page.row("inconclusive", lines + ([f"next: {step}"] if step else []), column=12)


def _not_tried(page: Page, target: TargetReport) -> None:
    """What no sample reached."""
    words = wording.not_tried(target, None if page.verbose else NOT_TRIED)
    if words:
        page.row("not tried", words)


def _confirmation(page: Page, target: TargetReport) -> None:
    """Whether a pass was confirmed; without ``-v`` only that it was not."""
    found = target.confirmation
    if found is not None and (page.verbose or found.verdict == "not confirmed"):
        page.row("by itself", lines_of(wording.confirmation(found), page.ascii), column=13)


def _torch(page: Page, target: TargetReport) -> None:
    """torch's verdicts, unless a finding of the same order has shown them."""
    for family, name, verdict in (
        ("GL4", "gradcheck", target.gradcheck),
        ("GL5", "gradgradcheck", target.gradgradcheck),
    ):
        told = any(
            _shows_torch(finding, family, verdict, page.verbose) for finding in target.findings
        )
        if verdict is not None and not told:
            failed = target.verdict == "fail" and any(
                wording.same_sample(finding, verdict, family) and finding.severity != "info"
                for finding in target.findings
            )
            where = verdict.sample if len(target.samples) > 1 else ""
            page.row(name, wording.torch_verdict(verdict, failed, where), column=13)


def _shows_torch(finding: Finding, family: str, verdict: TorchVerdict | None, verbose: int) -> bool:
    """Whether ``finding`` was shown with torch's verdict beside it."""
    if finding.follows is not None and not verbose:
        return False
    shown = finding.severity != "info" or verbose > 0
    return shown and wording.same_sample(finding, verdict, family)


def _anatomy(page: Page, target: TargetReport) -> None:
    if not target.anatomy:
        return
    page.blank()
    page.line("  anatomy", "bold")
    rows = []
    for fact in target.anatomy:
        prefix = {"gradient": "grad of ", "saved": "saved "}.get(fact.role, "")
        name = prefix + fact.name.removeprefix("saved") if fact.name else fact.role
        if fact.shape is None:
            rows.append([name, fact.text, "", "", "", "", ""])
            continue
        spread = "" if fact.min is None else f"{fact.min:.3g} to {fact.max:.3g}"
        rows.append(
            [
                name,
                f"{fact.dtype or ''}{fact.shape} {fact.text}".rstrip(),
                "" if fact.stride is None else str(fact.stride),
                f"{fact.nan}+{fact.inf}",
                spread,
                "" if fact.norm is None else f"{fact.norm:.3g}",
                str(fact.nbytes),
            ]
        )
    headers = ("name", "tensor", "stride", "NaN+Inf", "range", "norm", "bytes")
    table(page, headers, rows, right=headers[3:], wrapped=True)
    saved = [fact for fact in target.anatomy if fact.role == "saved"]
    total = wording.size(sum(fact.nbytes for fact in saved))
    page.paragraph(
        f"saved for backward: {wording.plural(len(saved), 'tensor')}, {total}"
        if saved
        else "saved for backward: nothing",
        indent=2,
        hanging=2,
    )


def _tried(page: Page, target: TargetReport) -> None:
    """Where the gradient was looked at beside the samples, and what was seen there."""
    if not target.tried:
        return
    page.blank()
    page.line("  further samples", "bold")
    rows = [
        [
            item.label,
            item.verdict,
            f"{item.forward_calls}/{item.backward_calls}",
            wording.seconds(item.duration_s),
        ]
        for item in target.tried
    ]
    table(page, ("arguments", "gradient", "calls", "time"), rows, right=("calls", "time"))


def _predicted(page: Page, target: TargetReport) -> None:
    if not target.predicted:
        return
    page.blank()
    page.line("  predicted before the checks ran", "bold")
    several = len(target.samples) > 1
    rows = [
        [
            item.family,
            item.sample if several else "",
            f"{item.usual_forward_calls}/{item.usual_backward_calls}",
            f"{item.forward_calls}/{item.backward_calls}",
            wording.seconds(item.duration_s),
            wording.memory(item.memory_bytes),
        ]
        for item in target.predicted
    ]
    headers = ("rules", "sample", "usual calls", "at most", "time", "memory")
    table(page, headers, rows, right=headers[2:])


def _powers(page: Page, target: TargetReport) -> None:
    several = len(target.samples) > 1
    rows = [
        [
            item.name,
            wording.named(check),
            check.sample or "" if several else "",
            item.verdict,
            wording.power(item.resolution),
            wording.power(item.element_resolution),
            f"{item.noise_factor:.2g}",
        ]
        for check in target.checks
        for item in check.inputs
    ]
    if not rows:
        return
    page.blank()
    page.line("  resolving power", "bold")
    headers = ("input", "code", "sample", "verdict", "resolves", "one element", "noise")
    table(page, headers, rows, right=headers[4:])


def _checks(page: Page, target: TargetReport) -> None:
    if not target.checks:
        return
    page.blank()
    page.line("  checks", "bold")
    rows = [
        [
            wording.named(check),
            check.verdict,
            check.sample or "",
            check.dtype or "",
            check.device or "",
            "" if check.resolution is None else wording.power(check.resolution),
            f"{check.forward_calls}/{check.backward_calls}",
            wording.seconds(check.duration_s),
            check.note,
        ]
        for check in target.checks
    ]
    headers = ("code", "verdict", "sample", "dtype", "device", "resolves", "calls", "time", "note")
    table(page, headers, rows, right=("resolves", "calls", "time"), wrapped=True)
