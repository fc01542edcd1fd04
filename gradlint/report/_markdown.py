"""Markdown, for pull requests and the summary of a CI step (GitHub's and GitLab's dialect)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gradlint.base.terminal import clean, escape
from gradlint.model.report import Finding, Report, TargetReport
from gradlint.report import wording
from gradlint.report._brief import brief_rows, title
from gradlint.report._evidence import ELEMENTS, cells, evidence_rows
from gradlint.report._excerpt import excerpt_lines
from gradlint.report._summary import made_by, outcome, remarks, skipped_lines

#: Operators that pass and are listed; of more, the number is told.
PASSING = 50

#: Columns of source in a code block.
_WIDTH = 100

#: What Markdown or HTML would read as more than a character.
_SYNTAX = re.compile(r"([\\`*_{}\[\]<>#|~!&$@])")

_SPAN = re.compile(r"(?<!`)(`[^`]+`)(?!`)")


def prose(text: str, *, cell: bool = False) -> str:
    """``text`` so that it reads as it is written; spans in backticks stay code.

    Args:
        text: of one paragraph.
        cell: whether it stands in a table, where a bar ends the cell, also in code.
    """
    parts = _SPAN.split(clean(text))
    return "".join(
        (part.replace("|", "\\|") if cell else part) if index % 2 else _SYNTAX.sub(r"\\\1", part)
        for index, part in enumerate(parts)
    )


def code(text: str, *, cell: bool = False) -> str:
    """``text`` as a span of code, whatever backticks it holds; ``cell`` as for :func:`prose`."""
    shown = clean(text)
    if not shown.strip():
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    shown = shown.replace("|", "\\|") if cell else shown
    return f"{fence}{space}{shown}{space}{fence}"


def _row(cells_of: Iterable[str]) -> str:
    """A row of a table, of which the cells are Markdown already."""
    return f"| {' | '.join(cells_of)} |\n"


def block(lines: Sequence[str], language: str = "text") -> str:
    """``lines`` as a block of code that nothing in them ends."""
    shown = [escape(line) for line in lines]
    fence = "`" * max(3, max(map(_longest_run, shown), default=0) + 1)
    return "\n".join([f"{fence}{language}", *shown, fence]) + "\n"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def markdown_parts(report: Report) -> Iterator[str]:
    """``report`` as a page: the outcome, the operators, every finding, and what was skipped."""
    yield f"# gradlint\n\n{prose(outcome(report))}\n"
    if report.interrupted:
        yield f"\n**{prose(wording.INTERRUPTED)}**\n"
    for error in report.errors:
        yield f"\n**{error.kind} error:** {prose(error.text)}\n"
    for remark in remarks(report):
        yield f"\n{prose(remark.text)}\n"
        yield from _list(remark.lines)
    yield from _operators(report)
    for target in report.targets:
        if target.verdict != "pass" or target.findings:
            yield from _target(target)
    skipped = skipped_lines(report)
    if skipped:
        yield "\n## Skipped\n"
        yield from _list(skipped)
    yield f"\n{prose(made_by(report))}, gradlint {prose(report.gradlint or 'unknown')}\n"


def _list(lines: Sequence[str]) -> Iterator[str]:
    mark = "\n-"
    for line in lines:
        yield f"{mark} {prose(line)}\n"
        mark = "-"


def _operators(report: Report) -> Iterator[str]:
    if not report.targets:
        return
    yield "\n| verdict | operator | findings and checks |\n| --- | --- | --- |\n"
    passing = 0
    for target in report.targets:
        if target.verdict == "pass" and not target.findings:
            passing += 1
            if passing > PASSING:
                continue
        counts = wording.verdict_counts(target.checks, target.findings)
        named = code(target.target, cell=True)
        yield _row((target.verdict, named, prose(counts, cell=True)))
    if passing > PASSING:
        yield f"| pass | {passing - PASSING} more | |\n"


def _target(target: TargetReport) -> Iterator[str]:
    yield f"\n## {code(target.target)}: {target.verdict}\n"
    for sample in target.samples[:1]:
        yield f"\nInputs ({prose(wording.origin(sample))}): {code(wording.arguments(sample))}\n"
    for note in target.notes:
        yield f"\n{prose(note)}\n"
    for finding in target.findings:
        short = finding.follows is not None or finding.baselined
        yield _in_a_line(finding) if short else _finding(finding, target)
    unsure = dict.fromkeys(
        (check.code, check.note) for check in target.checks if check.verdict == "inconclusive"
    )
    for rule, note in unsure:
        why = f": {prose(note)}" if note else ""
        yield f"\n- {rule}: inconclusive, {wording.NOT_PASSED}{why}\n"
    missed = wording.not_tried(target)
    if missed:
        yield f"\nNot tried: {prose(missed)}\n"


def _in_a_line(finding: Finding) -> str:
    """A consequence, or what is accepted."""
    also = "" if finding.follows is None else "also "
    level = f"{finding.severity}, {wording.IN_BASELINE}" if finding.baselined else finding.severity
    return f"\n- {also}{title(finding)} ({level}): {prose(finding.message)}\n"


def _finding(finding: Finding, target: TargetReport) -> str:
    parts = [f"\n### {finding.severity}: {title(finding)}\n\n{prose(finding.message)}\n"]
    if finding.location is not None:
        parts.append(f"\n{code(str(finding.location))}\n")
    excerpt = finding.excerpt
    if excerpt is not None and excerpt.lines:
        lines = excerpt_lines(excerpt, finding.location, finding.related, width=_WIDTH)
        parts.append("\n" + block([line.plain.rstrip() for line in lines]))
    rows = [*map(_brief_row, brief_rows(finding, target)), *_numbers(finding)]
    if rows:
        parts += ["\n", *rows]
    return "".join([*parts, *_long(finding)])


def _brief_row(row: tuple[str, list[str]]) -> str:
    label, lines = row
    shown = code(lines[0]) if label in ("reproduce", "script") else "<br>".join(map(prose, lines))
    return f"- {label}: {shown}\n"


def _numbers(finding: Finding) -> Iterator[str]:
    """Evidence that is short, an item each."""
    for row in evidence_rows(finding.evidence):
        if not row.whole and row.label != "measured" and row.lines:
            yield f"- {prose(row.label)}: {'<br>'.join(map(prose, row.lines))}\n"


def _long(finding: Finding) -> Iterator[str]:
    """Evidence that needs room: texts as they were printed, and tables."""
    for row in evidence_rows(finding.evidence):
        if row.whole:
            shown = row.lines
            if row.most is not None:
                shown = shown[-row.most :] if row.last else shown[: row.most]
            yield f"\n{row.label}:\n\n{block(shown)}"
        if row.records:
            headers, lines, numeric = cells(row.records[:ELEMENTS])
            marks = ["---:" if header in numeric else "---" for header in headers]
            head, *rest = [[prose(text, cell=True) for text in line] for line in (headers, *lines)]
            yield "\n" + "".join(map(_row, (head, marks, *rest)))
