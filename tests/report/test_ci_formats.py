"""JUnit, GitHub, GitLab and Markdown, each read as its consumer reads it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import jsonschema
import pytest
from markdown_it import MarkdownIt

from gradlint.model.coverage import PhaseCoverage
from gradlint.model.report import (
    BaselineUse,
    Check,
    Finding,
    Location,
    Report,
    RunError,
    TargetReport,
    Unchecked,
)
from gradlint.report._junit import MOST
from gradlint.report._markdown import block, code, prose
from gradlint.report.render import render
from gradlint.rules.catalogue import CATALOGUE
from tests.benchmarks.report_load import report_of
from tests.report.test_formats import HOSTILE

# -- JUnit -----------------------------------------------------------------------------------------

#: Element → its attributes, and its children in any number: the schema of Jenkins (junit-10.xsd),
#: as far as gradlint writes it, with ``properties`` of a case, which pytest writes, too.
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": (
        {"name", "time", "tests", "failures", "errors", "skipped"},
        {"testsuite"},
    ),
    "testsuite": (
        {"name", "time", "tests", "failures", "errors", "skipped"},
        {"properties", "testcase"},
    ),
    "testcase": (
        {"name", "classname", "time"},
        {"properties", "skipped", "error", "failure", "system-out"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "skipped": ({"message"}, set()),
    "error": ({"message", "type"}, set()),
    "failure": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


def junit(report: Report) -> ElementTree.Element:
    root = ElementTree.fromstring(render(report, "junit", rules=CATALOGUE))
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
    for element in [root, *root.iter("testsuite")]:
        cases = list(element.iter("testcase"))
        assert int(element.get("tests", "")) == len(cases)
        for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(element.get(key, "")) == sum(case.find(tag) is not None for case in cases)
        assert all(len(case.findall("failure")) <= 1 for case in cases)
    for suite in root:
        names = [case.get("name") for case in suite.iter("testcase")]
        assert len(set(names)) == len(names)
    return root


def failures(report: Report) -> int:
    root = junit(report)
    return int(root.get("failures", "")) + int(root.get("errors", ""))


def test_junit_of_each_verdict(every_verdict: Report, hostile: Callable[[str], Report]) -> None:
    root = junit(every_verdict)
    assert root.get("errors") == "1"  # the crash
    names = [case.get("name") for case in root.iter("testcase")]
    assert "GL802 devices disagree [inferred]" in names
    (case,) = (case for case in root.iter("testcase") if case.find("failure/..[@name]") is not None
               and case.get("name") == "GL401 wrong gradient [inferred]"
               and case.find("failure") is not None)  # fmt: skip
    sizes = {item.get("name"): item.get("value") for item in case.iter("property")}
    assert sizes["resolving_power"] == "3e-10"
    assert sizes["relative_error"] == "1.5"
    junit(Report())
    junit(hostile(HOSTILE))


def test_junit_fails_as_the_run_does(passing_target: TargetReport) -> None:
    target = passing_target
    target.findings = [Finding("GL401", "wrong_gradient", "warning", "wrong", sample="inferred")]
    target.checks.append(Check("GL402", "inconclusive", "inferred", note="noisy"))
    target.coverage = {"backward": PhaseCoverage(1, 2, [7])}
    report = Report([target])
    assert (failures(report), report.exit_code) == (1, 1)
    report.fail_on = "error"
    assert (failures(report), report.exit_code) == (0, 0)
    report.fail_on, target.findings = "uncovered", []
    assert (failures(report), report.exit_code) == (1, 1)  # what never ran
    target.verdict = "inconclusive"
    report.fail_on = "inconclusive"
    assert (failures(report), report.exit_code) == (1, 1)
    report.fail_on = "warning"
    assert (failures(report), report.exit_code) == (0, 0)
    report.errors = [RunError("usage", "no such target")]
    assert (failures(report), report.exit_code) == (1, 2)


def test_junit_gives_a_finding_to_the_check_that_made_it() -> None:
    checks = [
        Check("GL401", "pass", "a", dtype="float64"),
        Check("GL401", "fail", "a", dtype="float32"),
        Check("GL401", "pass", "b"),
    ]
    findings = [Finding("GL401", "n", "error", "wrong", sample="a") for _ in range(MOST + 5)]
    root = junit(Report([TargetReport("t", verdict="fail", checks=checks, findings=findings)]))
    (failed,) = (case for case in root.iter("testcase") if case.find("failure") is not None)
    assert failed.get("name") == "GL401 wrong gradient [a, float32]"
    text = failed.findtext("failure", "")
    assert text.count("wrong") >= MOST
    assert text.endswith("and 5 more, which the JSON report has")


# -- GitHub ----------------------------------------------------------------------------------------

_COMMAND = re.compile(r"::(error|warning|notice) ([^:\s][^:]*|)::(.*)")


def commands(report: Report) -> list[tuple[str, dict[str, str], str]]:
    """Level, properties and message of every command, decoded as the runner decodes them."""
    found = []
    for line in render(report, "github").splitlines():
        if not line.startswith("::"):
            continue
        match = _COMMAND.fullmatch(line)
        assert match, line
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        for escaped, char in (
            ("%2C", ","),
            ("%3A", ":"),
            ("%0A", "\n"),
            ("%0D", "\r"),
            ("%25", "%"),
        ):
            properties = {key: value.replace(escaped, char) for key, value in properties.items()}
        message = match[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        found.append((match[1], properties, message))
    return found


def test_annotations_come_worst_first_and_within_the_limits() -> None:
    report = report_of(60, 2)
    for number, finding in enumerate(report.findings):
        finding.severity = ("info", "warning", "error")[number % 3]  # type: ignore[assignment]
    found = commands(report)
    assert [level for level, _, _ in found] == (["error"] * 10 + ["warning"] * 10 + ["notice"] * 10)
    told = render(report, "github").splitlines()[-2]
    assert told == (
        "GitHub shows 10 annotations of each level a step; "
        "10 errors, 10 warnings, 10 info findings left out here."
    )


def test_columns_are_given_for_a_single_line_only(report: Report) -> None:
    ((_, given, message),) = commands(report)
    assert given == {
        "file": "examples/wrong/linear.py",
        "line": "31",
        "endLine": "31",
        "col": "41",
        "endColumn": "59",
        "title": "GL401 wrong gradient",
    }
    assert message.splitlines()[:2] == [
        "wrong gradient for `weight`",
        "cause: transposed: taken as .mT it agrees to 2e-10",
    ]
    assert "off by 150 %" in message
    report.findings[0].location = Location("a, b: c%\n.py", 31, 41, 33, 2)
    ((_, given, _),) = commands(report)
    assert {key: value for key, value in given.items() if key != "title"} == {
        "file": "a, b: c%\n.py",
        "line": "31",
        "endLine": "33",
    }


def test_what_is_in_the_baseline_and_what_nobody_checks(every_verdict: Report) -> None:
    report = every_verdict
    for finding in report.findings:
        finding.baselined = True
    report.baseline = BaselineUse("gradlint-baseline.json", 5, [{"op": "a.py:A", "code": "GL401"}])
    report.unchecked = [Unchecked("New", "function", Location("ops/new.py", 12, 7))]
    text = "ops/new.py,line=12"
    assert [text in line for line in render(report, "github").splitlines()] == [True, False]
    root = junit(report)
    assert [
        case.get("name") for case in root.iter("testcase") if case.find("failure") is not None
    ] == ["ops/new.py:12:7: New"]
    issue = json.loads(render(report, "gitlab"))[0]
    assert issue["description"] == "New (function) is checked by nothing (--require-coverage)"
    assert issue["location"] == {"path": "ops/new.py", "lines": {"begin": 12}}
    (run,) = json.loads(render(report, "sarif"))["runs"]
    assert all(result["suppressions"][0]["kind"] == "external" for result in run["results"])
    assert "ops/new.py:12:7: New (function)" in json.dumps(run["invocations"])
    for format in ("full", "markdown", "html"):
        shown = render(report, format, width=120).replace("\\_", "_")
        assert "1 operator under --require-coverage is checked by nothing" in shown
        assert "5 findings are in the baseline (gradlint-baseline.json)" in shown
        assert "a.py:A  GL401" in shown or "a.py:A GL401" in shown


def test_what_fails_without_a_finding_is_annotated(passing_target: TargetReport) -> None:
    passing_target.coverage = {"backward": PhaseCoverage(1, 2, [7])}
    passing_target.not_tried = ["line 7"]
    report = Report([passing_target])
    assert commands(report) == []
    report.fail_on = "uncovered"
    ((level, given, message),) = commands(report)
    assert (level, given["file"]) == ("error", "examples/right/square.py")
    assert message == (
        "examples/right/square.py:Square passes with code that never ran\nnot tried: line 7"
    )
    report.errors = [RunError("usage", "no such target: a:b")]
    assert commands(report)[0] == ("error", {"title": "gradlint"}, "no such target: a:b")


def test_hostile_text_is_no_command(hostile: Callable[[str], Report]) -> None:
    text = render(hostile(HOSTILE), "github")
    assert [line[:8] for line in text.splitlines() if line.startswith("::")] == ["::error "]
    assert "##[" not in text
    assert "##vso[" not in text


# -- GitLab ----------------------------------------------------------------------------------------

#: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "pattern": r"^(?!\./)"},
                    "lines": {
                        "type": "object",
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                        "required": ["begin"],
                    },
                },
                "required": ["path", "lines"],
            },
        },
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
    },
}


def test_gitlab_issues(every_verdict: Report, hostile: Callable[[str], Report]) -> None:
    for report in (every_verdict, Report(), hostile(HOSTILE), report_of(200, 4)):
        issues = json.loads(render(report, "gitlab"))
        jsonschema.Draft202012Validator(GITLAB).validate(issues)
        prints = [issue["fingerprint"] for issue in issues]
        assert len(set(prints)) == len(prints) == len(report.findings)
    first = json.loads(render(every_verdict, "gitlab"))[0]
    assert first["description"].startswith("GL401 wrong gradient: wrong gradient for `weight`")
    assert first["location"] == {"path": "examples/wrong/linear.py", "lines": {"begin": 31}}


def test_equal_findings_have_fingerprints_of_their_own() -> None:
    findings = [Finding("GL302", "n", "error", "NaN", input="x") for _ in range(3)]
    issues = json.loads(render(Report([TargetReport("t", findings=findings)]), "gitlab"))
    assert len({issue["fingerprint"] for issue in issues}) == 3


# -- Markdown --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a `b` c",
        "1 * 2 * 3 _x_ __y__ ~~z~~",
        "<b>&amp;</b> [a](b) ![c](d) | e",
        "`` ` ``` | \\ `",
        "https://example.org @team #12",
        HOSTILE,
    ],
)
def test_text_reads_as_it_is_written(text: str) -> None:
    parser = MarkdownIt("gfm-like", {"linkify": False})
    shown = re.sub(r"\\u|\\x", "", text)

    def words(html: str) -> str:
        plain = re.sub(r"<[^>]*>", "", html)
        for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            plain = plain.replace(entity, char)
        return " ".join(plain.split())

    html = parser.renderInline(prose(text))
    assert not re.search(r"<(?!/?code>)", html)
    if text.isprintable():
        assert words(html).replace("`", "") == " ".join(shown.split()).replace("`", "")
        table = parser.render(f"| a |\n| --- |\n| {code(text, cell=True)} |\n")
        (cell,) = re.findall(r"<td>(.*?)</td>", table, re.DOTALL)
        assert words(cell) == " ".join(text.split())


def test_nothing_ends_a_block() -> None:
    lines = ["```", "````x", "</pre><script>", "~~~"]
    html = MarkdownIt("gfm-like", {"linkify": False}).render(block(lines) + "\nafter\n")
    assert html.count("<pre>") == 1
    assert html.endswith("<p>after</p>\n")
    assert "&lt;script&gt;" in html


def test_a_page_in_markdown_has_its_parts(every_verdict: Report) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(render(every_verdict, "markdown"))
    headings = [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    assert headings[:3] == [
        "gradlint",
        "`examples/wrong/linear.py:SquareWeight`: fail",
        "error: GL401 wrong gradient",
    ]
    assert headings[-1] == "Skipped"
    assert sum(token.type == "table_open" for token in tokens) == 3
    assert sum(token.type == "fence" for token in tokens) == 1
