"""JUnit's XML: one test case for each operator, rule, sample, dtype and device.

What fails here is what fails the run, so that a page of test results and the exit code agree; other
findings are in the output of a case that passes. Needs junitparser (the extra ``junit``).
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import escape, lines_of
from gradlint.model.report import (
    FAIL_INCONCLUSIVE,
    Check,
    Finding,
    Report,
    TargetReport,
    failing,
)
from gradlint.model.rule import Rule
from gradlint.report import wording
from gradlint.report._brief import brief, title, unchecked_text

#: Findings of one check that are written out; how many there are more is said.
MOST = 20

#: Numbers of a finding that become properties of its case.
_SIZES = ("relative_error", "resolution", "worst_z", "differing", "measured_elements", "numel")

#: What no XML 1.0 holds, even as a reference, beside what :func:`escape` shows.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


@dataclass
class _Case:
    """One case, before it is written."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    check: Check | None = None
    failed: str = ""
    broken: bool = False
    skipped: str = ""


def junit_parts(report: Report, rules: Sequence[Rule] = ()) -> Iterator[str]:
    """``report`` as XML, a test case a piece.

    Args:
        report: the report.
        rules: the catalogue, from which the names of rules come.

    Raises:
        GradlintError: junitparser is not installed.
    """
    names = {finding.code: finding.name for finding in report.each_finding()}
    names.update((rule.code, rule.name) for rule in rules)
    return _parts(_junitparser(), report, names)


def check_junit() -> None:
    """Raise, before anything is run, if junitparser is not installed."""
    _junitparser()


def _junitparser() -> Any:
    try:
        return importlib.import_module("junitparser")
    except ImportError:
        raise GradlintError(
            "the format junit needs junitparser",
            place="junit",
            hint="run `pip install 'gradlint[junit]'`",
        ) from None


def _parts(junit: Any, report: Report, names: Mapping[str, str]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    suites = junit.JUnitXml("gradlint")
    counts = [_counts(_cases(report, target, names)) for target in report.targets]
    counts.append(_counts(_of_run(report)))
    _count(suites, *(sum(column) for column in zip(*counts, strict=True)))
    suites.time = report.duration_s
    yield _opened(suites)
    for target, count in zip(report.targets, counts, strict=False):
        suite = junit.TestSuite(_text(target.target))
        _count(suite, *count)
        suite.time = target.duration_s
        suite.add_property("kind", _text(target.kind))
        suite.add_property("verdict", target.verdict)
        suite.add_property("seed", str(report.seed))
        yield _opened(suite)
        for case in _cases(report, target, names):
            yield _written(junit, case, target)
        yield "</testsuite>\n"
    broken = list(_of_run(report))
    if broken:
        suite = junit.TestSuite("gradlint")
        _count(suite, *counts[-1])
        yield _opened(suite)
        yield from (_written(junit, case, TargetReport("gradlint")) for case in broken)
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _cases(report: Report, target: TargetReport, names: Mapping[str, str]) -> Iterator[_Case]:
    """The checks of ``target`` in their order, then what no check found."""
    owners = _owners(target)
    found: dict[int, list[Finding]] = defaultdict(list)
    unowned: dict[str, list[Finding]] = defaultdict(list)
    for finding in target.findings:
        owner = owners.get((finding.code, finding.sample))
        (found[owner] if owner is not None else unowned[finding.code]).append(finding)
    seen: dict[str, int] = defaultdict(int)
    for index, check in enumerate(target.checks):
        case = _Case(_name(check, names), found[index], check)
        seen[case.name] += 1
        if seen[case.name] > 1:
            case.name += f" #{seen[case.name]}"
        case.failed = _failure(report, case.findings)
        note = check.note or "no reason given"
        if check.verdict == "skipped":
            case.skipped = note
        elif check.verdict == "inconclusive" and not case.failed:
            words = f"inconclusive, {wording.NOT_PASSED}: {note}"
            if target.verdict == "inconclusive" and report.fail_on in FAIL_INCONCLUSIVE:
                case.failed = words
            else:
                case.skipped = words
        yield case
    for findings in unowned.values():
        failed = _failure(report, findings)
        broken = bool(failed) and target.verdict == "error"
        yield _Case(title(findings[0]), findings, failed=failed, broken=broken)
    if not target.checks and not target.findings:
        case = _Case("check", skipped="; ".join(target.notes) or "nothing was checked")
        if report.fails(target):
            case.failed, case.skipped, case.broken = case.skipped, "", True
        yield case
    elif target.uncovered and report.fail_on == "uncovered":
        yield _Case("coverage", failed=f"not tried: {wording.not_tried(target)}")


def _owners(target: TargetReport) -> dict[tuple[str, str | None], int]:
    """Which check of a rule on a sample made its findings: they do not say at which dtype, and
    some not on which sample."""
    owners: dict[tuple[str, str | None], int] = {}
    for index, check in enumerate(target.checks):
        for key in ((check.code, check.sample), (check.code, None)):
            first = owners.setdefault(key, index)
            if check.verdict == "fail" and target.checks[first].verdict != "fail":
                owners[key] = index
    return owners


def _of_run(report: Report) -> Iterator[_Case]:
    """What went wrong with the run itself, and what it should have checked."""
    for number, error in enumerate(report.errors, start=1):
        name = f"{error.kind} error" + (f" #{number}" if number > 1 else "")
        yield _Case(name, failed=error.text, broken=True)
    for item in report.unchecked:
        yield _Case(f"{item.location}: {item.name}", failed=unchecked_text(item))


def _name(check: Check, names: Mapping[str, str]) -> str:
    where = [part for part in (check.sample, check.dtype, check.device) if part]
    name = wording.rule_title(check.code, names.get(check.code, ""))
    return f"{name} [{', '.join(where)}]" if where else name


def _failure(report: Report, findings: Sequence[Finding]) -> str:
    failed = [finding for finding in findings if failing(finding, report.fail_on)]
    if not failed:
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return failed[0].message + more


def _counts(cases: Iterator[_Case]) -> tuple[int, int, int, int]:
    """How many cases there are, how many fail, are broken and are skipped."""
    tests = failures = errors = skipped = 0
    for case in cases:
        tests += 1
        errors += bool(case.failed and case.broken)
        failures += bool(case.failed and not case.broken)
        skipped += bool(case.skipped and not case.failed)
    return tests, failures, errors, skipped


def _count(suite: Any, tests: int, failures: int, errors: int, skipped: int) -> None:
    suite.tests, suite.failures, suite.errors, suite.skipped = tests, failures, errors, skipped


def _opened(suite: Any) -> str:
    """The start of an element whose children are written later."""
    text: str = suite.tostring().decode()
    if text.endswith("/>"):
        return text.removesuffix("/>").rstrip() + ">\n"
    return text[: text.rindex("</")] + "\n"


def _written(junit: Any, case: _Case, target: TargetReport) -> str:
    made = junit.TestCase(_text(case.name), _text(target.target))
    if case.check is not None:
        made.time = case.check.duration_s
    properties = junit.Properties()
    for key, value in _sizes(case):
        properties.add_property(junit.Property(key, value))
    if list(properties):
        made.append(properties)
    lines = _lines(case.findings, target)
    if case.failed:
        kind = junit.Error if case.broken else junit.Failure
        codes = wording.codes(finding.code for finding in case.findings)
        result = kind(_text(case.failed), codes or "gradlint")
        result.text = "\n".join(lines) or _text(case.failed)
        made.append(result)
    elif case.skipped:
        made.append(junit.Skipped(_text(case.skipped)))
    if lines and not case.failed:
        made.system_out = "\n".join(lines)
    text: str = made.tostring().decode()
    return text + "\n"


def _sizes(case: _Case) -> Iterator[tuple[str, str]]:
    """How sharply was judged, and how large the first error is."""
    if case.check is not None and case.check.resolution is not None:
        yield "resolving_power", f"{case.check.resolution:.3g}"
    if case.findings:
        evidence = case.findings[0].evidence
        for key in _SIZES:
            if evidence.get(key) is not None:
                yield key, _text(wording.plain(evidence[key]))


def _lines(findings: Sequence[Finding], target: TargetReport) -> list[str]:
    lines: list[str] = []
    for finding in findings[:MOST]:
        place = f"{finding.location}: " if finding.location else ""
        lines += [_text(f"{place}{title(finding)} ({finding.severity})")]
        lines += [f"  {_allowed(line)}" for line in brief(finding, target)]
    if len(findings) > MOST:
        lines.append(f"and {len(findings) - MOST} more, which the JSON report has")
    return lines


def _text(text: str) -> str:
    """``text`` on one line, with nothing that XML forbids."""
    return _allowed(" ".join(lines_of(text)))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", escape(text))
