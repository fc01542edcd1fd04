"""One finding in full: headline, source with carets, evidence, cause, help, reproduction."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gradlint.base.terminal import lines_of
from gradlint.model.report import Finding, TargetReport
from gradlint.report import wording
from gradlint.report._evidence import SPECIAL, cells, evidence_rows
from gradlint.report._excerpt import excerpt_lines
from gradlint.report.fixes import add_diff, fix_lines
from gradlint.report.table import table
from gradlint.report.text import Page

#: Longest label that others are aligned with: that of the slopes from above and below.
WIDEST_LABEL = 16


def headline(finding: Finding, target: str, ascii: bool = False) -> list[tuple[str, str]]:
    """Place, code, severity unless it is an error, and the fault; pieces of (text, style)."""
    style = wording.STYLES.get(finding.severity, "bold")
    place = str(finding.location) if finding.location else target
    parts = [(place, "bold"), ("  ", ""), (finding.code, style)]
    if finding.severity != "error":
        parts += [(" ", ""), (finding.severity, style)]
    if finding.baselined:
        parts.append((f" ({wording.IN_BASELINE})", "dim"))
    return [*parts, ("  ", ""), (finding.message, "")]


def add_finding(page: Page, finding: Finding, target: TargetReport) -> None:
    """Add ``finding``. Unless the page is verbose, an info gets its headline and help only, and a
    consequence, or what is in the baseline, one line."""
    if finding.follows is not None and not page.verbose:
        _consequence(page, finding)
        return
    text = Text()
    for part, style in headline(finding, target.target):
        text.append(part if part.isspace() else page.clean(part), style)
    page.paragraph(text, hanging=4)
    if finding.baselined and not page.verbose:
        return
    brief = finding.severity == "info" and not page.verbose
    if not brief:
        _source(page, finding)
    rows = _Rows(page, finding, wide=not brief and target.gradgradcheck is not None)
    if finding.cause or finding.cause_text:
        rows.add("cause", finding.cause_text or str(finding.cause))
    if not brief:
        if wording.where(finding):
            rows.add("where", wording.where(finding))
        _evidence(rows, finding)
        _torch(rows, finding, target)
        if finding.sample and len(target.samples) > 1:
            rows.add("sample", finding.sample)
    if finding.help:
        rows.add("help", lines_of(finding.help, page.ascii))
    if not brief:
        _next_steps(rows, finding)


def _next_steps(rows: _Rows, finding: Finding) -> None:
    """Add what can be done with it: the change that mends it, and how to see it again."""
    if finding.fix is not None:
        rows.add("fix", fix_lines(finding.fix))
        add_diff(rows.page, finding.fix, indent=rows.indent)
    if finding.reproduce:
        rows.add("reproduce", finding.reproduce, whole=True)
    if finding.script is not None:
        rows.add("script", wording.script(finding.script.path), whole=True)


def _consequence(page: Page, finding: Finding) -> None:
    """Add one line under the finding that it follows from."""
    level = "" if finding.severity == "error" else f" {finding.severity}"
    page.row("also", f"{finding.code}{level}  {page.clean(finding.message)}")


class _Rows:
    """Labelled rows with one width of labels for the whole finding."""

    def __init__(self, page: Page, finding: Finding, *, wide: bool) -> None:
        self.page = page
        longest = max((len(key) for key in finding.evidence if key not in SPECIAL), default=0)
        self.column = min(WIDEST_LABEL, max(9, longest))
        if wide and finding.code.startswith("GL5"):
            self.column = max(self.column, len("gradgradcheck"))

    def add(self, label: str, value: str | Sequence[str], *, whole: bool = False) -> None:
        style = "bold green" if label == "help" else "dim"
        self.page.row(label, value, column=self.column, style=style, whole=whole)

    @property
    def indent(self) -> int:
        return self.page.value_indent(self.column)


def _source(page: Page, finding: Finding) -> None:
    excerpt, location = finding.excerpt, finding.location
    shown: set[int] = set()
    if excerpt is not None and excerpt.lines:
        page.blank()
        for line in excerpt_lines(
            excerpt, location, finding.related, width=page.width, ascii=page.ascii
        ):
            page.line(line)
        page.blank()
        shown = {number for number, _ in excerpt.lines}
    elif excerpt is not None and excerpt.label:
        page.paragraph(excerpt.label, indent=4)
    for place in finding.related:
        inside = location is not None and place.file == location.file and place.line in shown
        if not inside:
            page.row("see also", str(place), whole=True)


def _evidence(rows: _Rows, finding: Finding) -> None:
    page = rows.page
    for row in evidence_rows(finding.evidence, verbose=page.verbose > 0, ascii=page.ascii):
        most = None if page.verbose else row.most
        rows.add(row.label, _cut(row.lines, most, page, last=row.last), whole=row.whole)
        shown = row.records[:most]
        if shown:
            headers, cells_of, numeric = cells(shown)
            table(page, headers, cells_of, indent=rows.indent, right=numeric)
        if len(shown) < len(row.records):
            more = f"and {len(row.records) - len(shown)} more (-v shows them)"
            page.paragraph(more, indent=rows.indent)


def _torch(rows: _Rows, finding: Finding, target: TargetReport) -> None:
    """Add torch's own verdict on the finding's sample: gradcheck at first order, gradgradcheck at
    second."""
    failed = finding.severity != "info"
    for family, name, verdict in (
        ("GL4", "gradcheck", target.gradcheck),
        ("GL5", "gradgradcheck", target.gradgradcheck),
    ):
        if verdict is not None and wording.same_sample(finding, verdict, family):
            rows.add(name, wording.torch_verdict(verdict, failed))


def _cut(lines: Sequence[str], most: int | None, page: Page, *, last: bool) -> list[str]:
    if most is None or len(lines) <= most:
        return list(lines)
    left = page.clean(f"… {len(lines) - most} more lines (-v shows them)")
    return [left, *lines[-most:]] if last else [*lines[:most], left]
