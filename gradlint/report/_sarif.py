"""SARIF 2.1.0, the format that code scanning reads, written by hand.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. GitHub takes files of at most
:data:`MOST_RESULTS` results and :data:`MOST_BYTES` when compressed, and shows :data:`SHOWN` of them
(https://docs.github.com/code-security/code-scanning/integrating-with-code-scanning). The worst
findings come first, and what is left out is said in a notification.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradlint.model.report import Finding, Fix, Location, Report, Severity
from gradlint.model.rule import Rule
from gradlint.report import wording
from gradlint.report._brief import brief, title, unchecked_text
from gradlint.report._json_text import json_line
from gradlint.report._paths import uri
from gradlint.report._ranked import Ranked, ranked
from gradlint.report.fixes import fix_lines

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

#: Results of one run that GitHub takes, how many of them it shows, and bytes of a compressed file.
MOST_RESULTS, SHOWN, MOST_BYTES = 25_000, 5_000, 10_000_000

#: Bytes kept free for what stands around the results (heuristic: 150 rules take 60,000).
_AROUND = 500_000

#: Under which name paths are relative.
_ROOT = "%SRCROOT%"

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}

#: What GitHub shows and sorts by.
_PROBLEMS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}


def sarif_parts(report: Report, rules: Sequence[Rule] = ()) -> Iterator[str]:
    """``report`` as a SARIF log of one run, a result a piece.

    Args:
        report: the report.
        rules: the catalogue, from which the texts of rules come.
    """
    items = ranked(report)
    known = {rule.code: rule for rule in rules}
    named: dict[str, Finding] = {}
    for item in items:
        named.setdefault(item.finding.code, item.finding)
    order = {code: index for index, code in enumerate(sorted(named))}
    driver = {
        "name": "gradlint",
        "version": report.gradlint or "unknown",
        "rules": [_rule(named[code], known) for code in order],
    }
    yield f'{{"$schema": {json_line(SCHEMA)}, "version": "2.1.0", "runs": [{{\n'
    yield f'"tool": {json_line({"driver": driver})},\n"columnKind": "unicodeCodePoints",\n'
    root = {"description": {"text": "The folder in which gradlint ran."}}
    yield f'"originalUriBaseIds": {json_line({_ROOT: root})},\n"results": ['
    written = 0
    size = _Compressed()
    for item in itertools.islice(items, MOST_RESULTS):
        text = json_line(_result(item, order))
        if size.add(text) > MOST_BYTES - _AROUND:
            break
        yield (",\n" if written else "\n") + text
        written += 1
    invocation = _invocation(report, written, len(items))
    yield f'\n],\n"invocations": [{json_line(invocation)}]\n}}]}}\n'


class _Compressed:
    """How many bytes a text takes when it is compressed."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(1)
        self._size = 0

    def add(self, text: str) -> int:
        """The size with ``text`` added, but for what the compressor still holds."""
        self._size += len(self._compressor.compress(text.encode()))
        return self._size


def _rule(finding: Finding, known: Mapping[str, Rule]) -> dict[str, Any]:
    rule = known.get(finding.code)
    severity = rule.severity if rule is not None else finding.severity
    family = wording.FAMILIES.get(finding.code[:3], "")
    described: dict[str, Any] = {
        "id": finding.code,
        "name": "".join(word.capitalize() for word in finding.name.split("_")) or finding.code,
        "shortDescription": {"text": title(finding)},
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {
            "tags": ["gradients", *([family] if family else [])],
            "problem.severity": _PROBLEMS[severity],
        },
    }
    if rule is not None:
        described["fullDescription"] = {"text": rule.summary}
        how = f"gradlint explain {rule.code}"
        described["help"] = {
            "text": f"Run `{how}`.",
            "markdown": f"{rule.text.strip()}\n\n`{how}` shows this in a terminal.",
        }
    return described


def _result(item: Ranked, order: Mapping[str, int]) -> dict[str, Any]:
    finding, place = item.finding, item.place
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": item.target.target, "kind": "function"}]
    }
    if place is not None:
        location["physicalLocation"] = _physical(place)
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": order[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _unlinked("\n".join(brief(finding, item.target)))},
        "locations": [location],
        "partialFingerprints": {
            "gradlint/v1": item.identity.fingerprint,
            # What GitHub goes by; without it, alerts would be told apart by the text of the line.
            "primaryLocationLineHash": f"{item.identity.fingerprint}:1",
        },
    }
    if finding.baselined:
        result["suppressions"] = [{"kind": "external", "justification": wording.IN_BASELINE}]
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _physical(place)}
            for number, place in enumerate(finding.related, start=1)
        ]
    if finding.fix is not None:
        result["fixes"] = [_fix(finding.fix)]
    told = {"operator": item.target.target, "cause": finding.cause, "input": finding.input}
    told |= {"output": finding.output, "sample": finding.sample, "reproduce": finding.reproduce}
    result["properties"] = {key: value for key, value in told.items() if value}
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    """The change as a viewer can apply it (section 3.55)."""
    changes: dict[str, list[dict[str, Any]]] = {}
    for one in fix.replacements:
        region = _physical(one.location)["region"]
        replacement = {"deletedRegion": region, "insertedContent": {"text": one.text}}
        changes.setdefault(one.location.file, []).append(replacement)
    return {
        "description": {"text": _unlinked(" ".join(fix_lines(fix)))},
        "artifactChanges": [
            {"artifactLocation": _artifact(file), "replacements": replacements}
            for file, replacements in changes.items()
        ],
    }


def _unlinked(text: str) -> str:
    """``text`` with nothing in it that a viewer would take for a link (section 3.11.6)."""
    return text.replace("](", "] (")


def _physical(place: Location) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(1, place.line), "startColumn": max(1, place.column)}
    if place.end_line is not None and place.end_line >= place.line:
        region["endLine"] = max(1, place.end_line)
        if place.end_column is not None:
            region["endColumn"] = max(1, place.end_column)
    return {"artifactLocation": _artifact(place.file), "region": region}


def _artifact(file: str) -> dict[str, str]:
    reference = uri(file)
    artifact = {"uri": reference}
    if not reference.startswith("file:"):
        artifact["uriBaseId"] = _ROOT
    return artifact


def _invocation(report: Report, written: int, total: int) -> dict[str, Any]:
    """How the run went, what could not be judged, and what this log leaves out."""
    notes = []
    if written < total:
        notes.append(
            f"{total - written:,} of {total:,} findings are left out here, the worst were kept: "
            "code scanning takes no more. The JSON report has all of them."
        )
    if written > SHOWN:
        notes.append(f"GitHub shows the first {SHOWN:,} of these {written:,} results.")
    if report.interrupted:
        notes.append(wording.INTERRUPTED)
    unsure = sum(target.verdict == "inconclusive" for target in report.targets)
    if unsure:
        words = wording.plural(unsure, "operator")
        notes.append(f"{words} could not be judged; the other formats say why.")
    notes += [error.text for error in report.errors]
    notes += [f"{item.location}: {unchecked_text(item)}" for item in report.unchecked]
    return {
        "executionSuccessful": not report.errors and not report.interrupted,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": _unlinked(text)}} for text in notes
        ],
    }
