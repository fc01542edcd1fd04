"""One page of HTML that needs nothing else: no network, no other file. Needs jinja2 (the extra
``html``), which escapes all text."""

from __future__ import annotations

import base64
import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean, lines_of
from gradlint.model.report import (
    SEVERITIES,
    Check,
    Finding,
    Report,
    SampleReport,
    TargetReport,
    TensorFacts,
    failing,
)
from gradlint.model.rule import Rule
from gradlint.model.sweep import SweepReport
from gradlint.report import _figures, wording
from gradlint.report._brief import root_title
from gradlint.report._evidence import cells, evidence_rows
from gradlint.report._excerpt import MarkedLine, marked_lines
from gradlint.report._figures import HeatMap, Plot, heat_map, sweep_plot
from gradlint.report._ranked import ranked
from gradlint.report._summary import made_by, outcome, remarks, skipped_lines
from gradlint.report.fixes import fix_lines

#: Where the template, the style and the script are.
_FOLDER = Path(__file__).parent / "page"

#: Findings that are shown in full, the worst ones: browsers become slow at more (heuristic: 2,000
#: take some 8 MB).
MOST_FINDINGS = 2_000

#: Lines of tables of checks and tensors in the whole page, for the same reason.
MOST_ROWS = 20_000

#: Further samples and rows of a table that are listed for one operator.
MOST_SAMPLES = 12


@dataclass(frozen=True)
class Table:
    """A table as texts; ``numeric`` holds the headers of columns that are set flush right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[str] = ()


@dataclass(frozen=True)
class Shown:
    """A row of a finding: its label, then lines of prose or of code, then a table."""

    label: str
    lines: Sequence[str] = ()
    code: bool = False
    table: Table | None = None


@dataclass(frozen=True)
class FindingView:
    """A finding as the template shows it."""

    finding: Finding
    title: str
    place: str
    message: str
    fails: bool
    source: list[MarkedLine]
    rows: list[Shown]
    map: HeatMap | None
    script: str


@dataclass
class TargetView:
    """An operator as the template shows it."""

    target: TargetReport
    counts: str
    time: str
    samples: list[str]
    findings: list[FindingView]
    left_out: int
    inconclusive: list[str]
    skipped: list[str]
    not_tried: str
    torch: list[Shown]
    confirmation: str
    checks: Table | None
    anatomy: Table | None
    sweeps: list[Plot] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether it is shown at once."""
        return self.target.verdict != "pass" or bool(self.findings) or bool(self.sweeps)


def html_parts(
    report: Report, rules: Sequence[Rule] = (), sweeps: Sequence[SweepReport] = ()
) -> Iterator[str]:
    """``report`` as a page, in pieces.

    Args:
        report: the report.
        rules: the catalogue, from which the names of rules come.
        sweeps: sweeps of the same operators, whose curves are shown.

    Raises:
        GradlintError: jinja2 is not installed.
    """
    environment = _environment(_jinja())
    script = (_FOLDER / "filter.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _Page(report, rules, sweeps)
    stream = environment.get_template("page.html").stream(
        script=script,
        # Whatever else might get into the page, it is no script that runs.
        script_hash=f"sha256-{digest}",
        style=(_FOLDER / "style.css").read_text(encoding="utf-8"),
        report=report,
        page=page,
        figures=_figures,
        severities=SEVERITIES,
    )
    return iter(stream)


def check_html() -> None:
    """Raise, before anything is run, if jinja2 is not installed."""
    _jinja()


def _jinja() -> Any:
    try:
        return importlib.import_module("jinja2")
    except ImportError:
        raise GradlintError(
            "the format html needs jinja2",
            place="html",
            hint="run `pip install 'gradlint[html]'`",
        ) from None


def _environment(jinja: Any) -> Any:
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(str(_FOLDER)),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_harmless,
    )
    environment.filters["lines"] = lines_of
    environment.filters["spans"] = _spans
    environment.filters["plural"] = wording.plural
    return environment


def _harmless(value: Any) -> Any:
    """What the template shows: hidden characters are escaped in all that is not of the page."""
    own = hasattr(value, "__html__")
    return clean(value) if isinstance(value, str) and not own else value


def _spans(text: str) -> list[tuple[str, bool]]:
    """``text`` in pieces, each with whether it stood between backticks."""
    pieces = re.split(r"`([^`]+)`", text)
    return [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]


class _Page:
    """What the template asks for, made when it asks, so that a large page needs little memory."""

    def __init__(
        self, report: Report, rules: Sequence[Rule], sweeps: Sequence[SweepReport]
    ) -> None:
        self._report = report
        self._names = {rule.code: rule.name for rule in rules}
        self.counts: Counter[str] = Counter()
        codes: Counter[str] = Counter()
        for finding in report.each_finding():
            self._names[finding.code] = finding.name
            self.counts[finding.severity] += 1
            codes[finding.code] += 1
        self._kept = ranked(report).places(MOST_FINDINGS)
        self._rows = MOST_ROWS
        self._sweeps = [target for sweep in sweeps for target in sweep.targets]
        self.outcome = outcome(report)
        self.remarks = remarks(report)
        self.skipped = skipped_lines(report)
        self.made_by = made_by(report)
        self.total = codes.total()
        self.shown = len(self._kept)
        self.codes = [(code, self.title(code), codes[code]) for code in sorted(codes)]
        self.state = "passes" if report.ok else "fails" if report.exit_code == 1 else "incomplete"
        named = {target.target for target in report.targets}
        #: Sweeps of operators that the report does not have.
        self.other_sweeps = [
            (item.target, _plots(item.inputs)) for item in self._sweeps if item.target not in named
        ]

    def title(self, code: str) -> str:
        """A code with its name."""
        return wording.rule_title(code, self._names.get(code, ""))

    def targets(self) -> Iterator[TargetView]:
        """Every operator: those that fail first, and those that pass last."""
        order = {"error": 0, "fail": 0, "inconclusive": 1, "skipped": 2, "pass": 3}
        ranks = [order[target.verdict] for target in self._report.targets]
        for number in sorted(range(len(ranks)), key=ranks.__getitem__):
            yield self._target(number, self._report.targets[number])

    def _target(self, number: int, target: TargetReport) -> TargetView:
        shown = [
            finding
            for position, finding in enumerate(target.findings)
            if (number, position) in self._kept
        ]
        return TargetView(
            target=target,
            counts=wording.verdict_counts(target.checks, target.findings),
            time=wording.seconds(target.duration_s) if target.duration_s else "",
            samples=_samples(target.samples),
            findings=[self._finding(finding, target) for finding in shown],
            left_out=len(target.findings) - len(shown),
            inconclusive=self._notes(target, "inconclusive"),
            skipped=self._notes(target, "skipped"),
            not_tried=wording.not_tried(target),
            torch=_torch(target),
            confirmation=wording.confirmation(target.confirmation) if target.confirmation else "",
            checks=self._afford(self._checks(target.checks)),
            anatomy=self._afford(_anatomy(target.anatomy)),
            sweeps=[
                plot
                for item in self._sweeps
                if item.target == target.target
                for plot in _plots(item.inputs)
            ],
        )

    def _afford(self, table: Table) -> Table | None:
        """``table``, unless the page has enough rows; None for an empty one, too."""
        if not table.rows or len(table.rows) > self._rows:
            return None
        self._rows -= len(table.rows)
        return table

    def _finding(self, finding: Finding, target: TargetReport) -> FindingView:
        excerpt = finding.excerpt
        source = marked_lines(excerpt, finding.location, finding.related) if excerpt else []
        return FindingView(
            finding=finding,
            title=self.title(finding.code),
            place=clean(str(finding.location)) if finding.location else "",
            message=clean(finding.message),
            fails=failing(finding, self._report.fail_on),
            source=source,
            rows=list(self._finding_rows(finding, target)),
            map=heat_map(finding, target),
            script="\n".join(lines_of(finding.script.text)) if finding.script is not None else "",
        )

    def _finding_rows(self, finding: Finding, target: TargetReport) -> Iterator[Shown]:
        if finding.cause or finding.cause_text:
            yield Shown("cause", lines_of(finding.cause_text or str(finding.cause)))
        if wording.where(finding):
            yield Shown("where", [wording.where(finding)])
        for row in evidence_rows(finding.evidence):
            table = Table(*cells(row.records)) if row.records else None
            yield Shown(row.label, row.lines, row.whole, table)
        if finding.sample and len(target.samples) > 1:
            yield Shown("sample", [clean(finding.sample)])
        for place in finding.related:
            yield Shown("see also", [clean(str(place))])
        if root_title(finding, target):
            yield Shown("follows from", [root_title(finding, target)])
        if finding.help:
            yield Shown("help", lines_of(finding.help))
        if finding.fix is not None:
            yield Shown("fix", list(map(clean, fix_lines(finding.fix))))
            yield Shown("diff", list(map(clean, finding.fix.diff.splitlines())), code=True)
        if finding.reproduce:
            yield Shown("reproduce", [clean(finding.reproduce)], code=True)
        if finding.script is not None:
            yield Shown("script", [clean(wording.script(finding.script.path))], code=True)

    def _notes(self, target: TargetReport, verdict: str) -> list[str]:
        """The reasons of checks of one verdict, each with its rules."""
        reasons: dict[str, dict[str, None]] = {}
        for check in target.checks:
            if check.verdict == verdict:
                words = check.note + (f"; next: {check.help}" if check.help else "")
                reasons.setdefault(words or "no reason given", {})[self.title(check.code)] = None
        return [f"{', '.join(names)}: {clean(reason)}" for reason, names in reasons.items()]

    def _checks(self, checks: Sequence[Check]) -> Table:
        rows = [
            [
                self.title(check.code),
                check.verdict,
                ", ".join(
                    clean(part) for part in (check.sample, check.dtype, check.device) if part
                ),
                "" if check.resolution is None else wording.power(check.resolution),
                f"{check.forward_calls}/{check.backward_calls}",
                wording.seconds(check.duration_s),
            ]
            for check in checks
            if check.verdict != "skipped"
        ]
        headers = ("rule", "verdict", "on", "resolves", "calls", "time")
        return Table(headers, rows, ("resolves", "calls", "time"))


def _plots(inputs: Any) -> list[Plot]:
    return [plot for item in inputs if (plot := sweep_plot(item)) is not None]


def _samples(samples: Sequence[SampleReport]) -> list[str]:
    lines = [
        f"{clean(sample.label)}: {clean(wording.arguments(sample))}"
        for sample in samples[:MOST_SAMPLES]
    ]
    if len(samples) > MOST_SAMPLES:
        lines.append(f"and {wording.plural(len(samples) - MOST_SAMPLES, 'more sample')}")
    return lines


def _torch(target: TargetReport) -> list[Shown]:
    failed = target.verdict == "fail"
    return [
        Shown(
            name,
            [line for text in wording.torch_verdict(verdict, failed) for line in lines_of(text)],
        )
        for name, verdict in (
            ("gradcheck", target.gradcheck),
            ("gradgradcheck", target.gradgradcheck),
        )
        if verdict is not None
    ]


def _anatomy(tensors: Sequence[TensorFacts]) -> Table:
    rows = [
        [
            clean(fact.role),
            clean(fact.name),
            clean(
                f"{fact.dtype or ''}{fact.shape} {fact.text}"
                if fact.shape is not None
                else fact.text
            ),
            "" if fact.stride is None else str(fact.stride),
            f"{fact.nan}+{fact.inf}" if fact.shape is not None else "",
            ""
            if fact.min is None or fact.max is None
            else f"{wording.plain(fact.min)} to {wording.plain(fact.max)}",
            "" if fact.norm is None else f"{fact.norm:.3g}",
            wording.memory(fact.nbytes) if fact.shape is not None else "",
        ]
        for fact in tensors
    ]
    headers = ("role", "name", "tensor", "stride", "NaN+Inf", "range", "norm", "size")
    return Table(headers, rows, headers[4:])
