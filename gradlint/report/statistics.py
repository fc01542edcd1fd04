"""How often each rule found something: the table of ``--statistics``."""

from __future__ import annotations

from collections import Counter

from gradlint.model.report import Report


def counted(report: Report) -> list[tuple[str, str, int]]:
    """Code, name and number of findings of each rule that found something, most first."""
    counts = Counter((finding.code, finding.name) for finding in report.each_finding())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(code, name, count) for (code, name), count in ordered]


def statistics_text(report: Report) -> str:
    """One line for each rule: how often, code, name; in columns."""
    rows = counted(report)
    if not rows:
        return "No findings.\n"
    width = len(str(rows[0][2]))
    return "".join(f"{count:>{width}}  {code}  {name}\n" for code, name, count in rows)
