"""Findings about what accepts findings: left over, without a reason, or of no effect.

The process that reports makes them from the text of the files and from what came of the checks of
the whole run: a comment may be needed by another operator than the one that it stands in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gradlint.base.errors import SpecError
from gradlint.checking.severity import as_set
from gradlint.model.report import Accepted, Check, Finding, Location, Report, TargetReport
from gradlint.model.rule import Rule
from gradlint.model.settings import DEVICES, Settings
from gradlint.rules.catalogue import CATALOGUE, by_code, select_rules
from gradlint.rules.loading import (
    suppression_without_reason,
    unknown_suppressed_rule,
    unused_suppression,
)
from gradlint.spec.load import load as load_spec
from gradlint.targets.resolve import is_spec_path
from gradlint.targets.source_file import SourceFile, read_shown_source
from gradlint.targets.suppressions import SuppressingComment, head_of, suppressing_comments

#: Said of a check that looks at one sample, on all others: it has run all the same.
_FIRST_ONLY = "looks at the first sample only"

#: Findings after which it is not known what the rules would have said.
_BROKEN = ("GL001", "GL002", "GL005", "GL006", "GL007", "GL009")

#: Files of which it is kept what they define: targets come file by file.
_KEPT_FILES = 8

#: Device → words by which a text speaks of it.
_DEVICE_WORDS = {
    "cpu": re.compile(r"(?<![a-z])cpu(?![a-z])", re.IGNORECASE),
    "cuda": re.compile(r"cuda|triton|(?<![a-z])gpu", re.IGNORECASE),
}

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Stated:
    """One code that is accepted in ``target``, and where that stands.

    Args:
        number: of the target in the report.
        head: whether it holds for the whole of the operator.
        wide: whether it holds for more than its line.
    """

    number: int
    target: TargetReport
    code: str
    reason: str
    location: Location | None
    head: bool
    wide: bool = True


def add_suppression_findings(report: Report, settings: Settings) -> None:
    """Add to the targets of ``report`` what is wrong with their suppressions."""
    if settings.untrusted:
        return  # none of them was obeyed
    wanted = {rule.code for rule in select_rules(settings)}
    whole = not (report.interrupted or report.stopped)
    used = [
        (number, item)
        for number, target in enumerate(report.targets)
        for check in target.checks
        for item in check.accepted
    ]
    told: set[Location] = set()
    for number, target in enumerate(report.targets):
        found: list[Finding] = []
        for comment in _comments(target):
            if comment.location not in told:
                told.add(comment.location)
                found += _about_form(target, comment, settings)
        found += _without_reason(target, settings)
        for stated in _stated(number, target) if whole else ():
            if not _is_used(stated, used) and _all_ran(stated, report, settings):
                found.append(_unused(stated, settings))
        made = [as_set(item, settings) for item in found if item.code in wanted]
        if made:
            target.findings += made
            report.targets[number] = target


# -- what stands there -----------------------------------------------------------------------------


def _definition(target: TargetReport) -> tuple[SourceFile, _Definition] | None:
    """The class or function that ``target`` is, where its file shows it and nothing derives from
    it, by which its code would be run as well."""
    if target.location is None or is_spec_path(target.target):
        return None
    source = read_shown_source(target.location.file)
    if source is None or source.tree is None:
        return None
    node = _definitions(source).get(target.location.line)
    return None if node is None else (source, node)


@lru_cache(maxsize=_KEPT_FILES)
def _definitions(source: SourceFile) -> dict[int, _Definition]:
    """The classes and functions of a file by their lines, of several in one line the outermost."""
    found: dict[int, _Definition] = {}
    for node in ast.walk(source.tree or ast.Module([], [])):
        if isinstance(node, _Definition):
            found.setdefault(node.lineno, node)
    return found


@lru_cache(maxsize=_KEPT_FILES)
def _bases(source: SourceFile) -> frozenset[str]:
    """The names, without those of modules, of all that the classes of a file derive from."""
    return frozenset(
        ast.unparse(base).rpartition(".")[2]
        for node in _definitions(source).values()
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    )


def _heads(node: _Definition) -> set[int]:
    """The lines of the headers of ``node`` and of the definitions in it."""
    spans = [head_of(part) for part in ast.walk(node) if isinstance(part, _Definition)]
    return {line for first, last in spans for line in range(first, last + 1)}


def _comments(target: TargetReport) -> Iterator[SuppressingComment]:
    found = _definition(target)
    if found is not None:
        source, node = found
        first, _ = head_of(node)
        yield from suppressing_comments(source, first, node.end_lineno or node.lineno)


def _stated(number: int, target: TargetReport) -> Iterator[_Stated]:
    """Every code that is accepted by a comment in ``target``, by its spec or by itself."""
    declared = dict(target.accepts)
    for code, location in _in_spec(target):
        yield _Stated(number, target, code, declared.pop(code, ""), location, head=True)
    found = _definition(target)
    if found is None:
        return
    source, node = found
    last = head_of(node)[1]
    heirs = node.name in _bases(source)
    heads = _heads(node)
    for comment in _comments(target):
        if not comment.effective:
            continue
        head = comment.location.line <= last
        for code in comment.codes:
            declared.pop(code, None) if head else None
            if not heirs:
                yield _Stated(
                    number,
                    target,
                    code,
                    comment.reason,
                    comment.location,
                    head,
                    comment.location.line in heads,
                )
    for code, reason in declared.items():
        if not heirs:
            yield _Stated(number, target, code, reason, target.location, head=True)


def _in_spec(target: TargetReport) -> Iterator[tuple[str, Location]]:
    if not is_spec_path(target.target):
        return
    try:
        spec = load_spec(target.target)
    except SpecError:
        return  # said when it was loaded
    for index, item in enumerate(spec.ignore):
        mark = spec.places.value(("ignore", index, "code"))
        yield item.code, Location(target.target, mark.line, mark.column)


# -- what is wrong with it -------------------------------------------------------------------------


def _about_form(
    target: TargetReport, comment: SuppressingComment, settings: Settings
) -> Iterator[Finding]:
    """That a comment has no effect, or no reason."""
    name, place = target.target, comment.location
    if not (comment.effective and comment.codes):
        yield unknown_suppressed_rule.make_finding(name, "", place, settings)
        return
    unknown = [code for code in comment.codes if not _rules_of(code)]
    for code in unknown:
        yield unknown_suppressed_rule.make_finding(name, code, place, settings)
    if not comment.reason and len(unknown) < len(comment.codes):
        codes = ", ".join(code for code in comment.codes if code not in unknown)
        yield suppression_without_reason.make_finding(name, codes, place, settings)


def _without_reason(target: TargetReport, settings: Settings) -> Iterator[Finding]:
    """That the operator itself declares what it accepts, and not why."""
    written = {code for comment in _comments(target) for code in comment.codes}
    bare = [code for code, reason in target.accepts.items() if not reason and code not in written]
    if bare:
        yield suppression_without_reason.make_finding(
            target.target, ", ".join(bare), target.location, settings, declared=True
        )


def _unused(stated: _Stated, settings: Settings) -> Finding:
    rule = by_code(stated.code)
    what = f"{rule.code} {rule.name}" if rule else f"all rules of {stated.code}"
    return unused_suppression.make_finding(
        stated.target.target, stated.code, what, stated.reason, stated.location, settings
    )


def _rules_of(code: str) -> list[Rule]:
    if not code.startswith("GL"):
        return []
    return [rule for rule in CATALOGUE if rule.code.startswith(code)]


def _is_used(stated: _Stated, used: Iterable[tuple[int, Accepted]]) -> bool:
    """Whether something was found that ``stated`` accepts."""
    for number, item in used:
        if item.under != stated.code:
            continue
        if item.location is None and number == stated.number and stated.head:
            return True
        if item.location is not None and stated.location is not None:
            place = (item.location.file, item.location.line)
            if place == (stated.location.file, stated.location.line):
                return True
    return False


def _all_ran(stated: _Stated, report: Report, settings: Settings) -> bool:
    """Whether everything ran that could have found what ``stated`` accepts."""
    target = stated.target
    rules = _rules_of(stated.code)
    selected = {rule.code for rule in select_rules(settings)}
    return (
        bool(rules)
        and all(rule.has_probe and rule.code in selected for rule in rules)
        and all(_judged(rule, target.checks) for rule in rules)
        and not any(device in report.skipped for device in DEVICES)
        and not _may_be_for_another_device(stated, settings)
        and target.verdict in ("pass", "fail", "inconclusive")
        and not any(finding.code in _BROKEN for finding in target.findings)
        and _reached(stated)
    )


def _may_be_for_another_device(stated: _Stated, settings: Settings) -> bool:
    """Whether the reason, the spec or the file speaks of a device that was not asked for: what is
    accepted may be found there."""
    texts = [stated.reason]
    for location in (stated.location, stated.target.location):
        source = read_shown_source(location.file) if location is not None else None
        texts += source.lines if source is not None else []
    text = "\n".join(texts)
    absent = [device for device in DEVICES if device not in settings.devices]
    return any(_DEVICE_WORDS[device].search(text) for device in absent)


def _judged(rule: Rule, checks: Iterable[Check]) -> bool:
    """Whether ``rule`` came to a verdict on every sample, with all that it measures."""
    own = [check for check in checks if check.code == rule.code]
    ran = [check for check in own if check.verdict in ("pass", "fail")]
    rest = [check for check in own if check not in ran]
    return (
        bool(ran)
        and all(check.verdict == "skipped" and check.note == _FIRST_ONLY for check in rest)
        and all((check.pairs or 0) >= (check.pairs_usual or 0) for check in ran)
    )


def _reached(stated: _Stated) -> bool:
    """Whether the code ran that it stands in: its line, or all of the operator."""
    coverage = stated.target.coverage.values()
    if stated.wide or stated.location is None:
        return all(phase.full for phase in coverage)
    return not any(stated.location.line in phase.missed for phase in coverage)
