"""A finding in a few lines of plain text, for formats that show one beside the code."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.base.terminal import clean, lines_of
from gradlint.model.report import Finding, TargetReport, Unchecked
from gradlint.report import wording


def title(finding: Finding) -> str:
    """Code and name of the rule: a code never stands alone."""
    return wording.rule_title(finding.code, finding.name)


def unchecked_text(item: Unchecked) -> str:
    """What is said of an operator that had to be checked and was not."""
    return f"{clean(item.name)} ({clean(item.kind)}) is checked by nothing (--require-coverage)"


def root_title(finding: Finding, target: TargetReport) -> str:
    """Code and name of the rule whose finding this one follows from; "" where it is a root."""
    if not finding.follows or finding.follows == finding.code:
        return ""
    names = (other.name for other in target.findings if other.code == finding.follows)
    return wording.rule_title(finding.follows, next(names, ""))


def brief_rows(finding: Finding, target: TargetReport) -> Iterator[tuple[str, list[str]]]:
    """Label and lines of what a reader needs: cause, place among the outputs, size, next steps."""
    rows = (
        ("cause", finding.cause_text or finding.cause or ""),
        ("where", wording.where(finding)),
        ("measured", "\n".join(wording.measurement(finding.evidence))),
        ("follows from", root_title(finding, target)),
        ("help", finding.help),
        ("reproduce", finding.reproduce),
        ("script", wording.script(finding.script.path) if finding.script is not None else ""),
    )
    for label, text in rows:
        if text:
            yield label, lines_of(text)


def brief(finding: Finding, target: TargetReport) -> list[str]:
    """The message, then :func:`brief_rows`; hidden characters are escaped."""
    lines = lines_of(finding.message)
    for label, texts in brief_rows(finding, target):
        lines.append(f"{label}: {texts[0]}")
        lines += [f"  {text}" for text in texts[1:]]
    return lines
