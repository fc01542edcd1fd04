from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser

import jsonschema
import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from gradlint.base.errors import GradlintError
from gradlint.model.report import Check, Finding, TargetReport
from gradlint.report.display import Report
from gradlint.report.render import FORMATS, json_parts, render, render_parts, stream_options
from gradlint.report.schema import json_schema
from tests.benchmarks.report_load import report_of


def test_unknown_format_offers_the_nearest() -> None:
    with pytest.raises(GradlintError) as caught:
        render(Report(), "concice")
    assert str(caught.value) == (
        "--output-format: unknown output format 'concice'\ndid you mean `concise`?"
    )
    assert FORMATS[:3] == ("full", "concise", "json")


def test_concise_is_one_line_a_finding(page: SnapshotAssertion, report: Report) -> None:
    report.targets[0].findings = [Finding("GL202", "n", "info", "summed\nby the [engine]")]
    report.targets[0].checks.append(Check("GL501", "inconclusive", note="noisy"))
    text = render(report, "concise", width=80)
    assert text == page
    assert render(report, "concise", width=20) == text
    assert "\x1b[1;31mGL401\x1b[0m" in render(report, "concise", color=True)


def test_concise_of_nothing_is_nothing(passing_target: TargetReport) -> None:
    assert render(Report([passing_target]), "concise") == ""


def test_concise_says_why_selected_rules_could_not_run(passing_target: TargetReport) -> None:
    passing_target.verdict = "inconclusive"
    passing_target.checks = [Check("GL403", "skipped", note="no jvp of its own")]
    text = render(Report([passing_target]), "concise")
    assert text.endswith(": GL403 inconclusive (not counted as passed): no jvp of its own\n")
    # Where another check is inconclusive, rules that were skipped have nothing to add.
    passing_target.checks.append(Check("GL401", "inconclusive", note="noisy"))
    (line,) = render(Report([passing_target]), "concise").splitlines()
    assert "GL401 inconclusive" in line


def test_json_follows_its_schema(report: Report, hostile: Callable[[str], Report]) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for case in (report, Report(), hostile("\ud800\x1b[0m[red]")):
        text = render(case, "json")
        assert text.isascii()
        validator.validate(json.loads(text))


def test_json_schema_refuses_what_the_contract_does(report: Report) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for path, value in (
        (("targets", 0, "verdict"), "ok"),
        (("targets", 1, "findings", 0, "severity"), "fatal"),
        (("targets", 1, "findings", 0, "location", "line"), "31"),
        (("schema_version",), 2),
        (("summary",), {}),
    ):
        entry = report.to_dict()
        place = entry
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(entry)


def test_json_holds_the_contract(report: Report) -> None:
    report.targets[1].findings[0].evidence["worst_z"] = float("inf")
    text = render(report, "json")
    entry = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert list(entry)[:5] == ["schema_version", "gradlint", "seed", "environment", "summary"]
    assert text.startswith('{\n  "schema_version": 1,\n  "gradlint": "0.1.0",\n  "seed": 8315,\n')
    assert entry["summary"] == {
        "targets": 2,
        "pass": 1,
        "fail": 1,
        "inconclusive": 0,
        "error": 0,
        "skipped": 0,
        "uncovered": 0,
        "findings": 1,
        "duration_s": 1.25,
    }
    target = entry["targets"][1]
    finding = target["findings"][0]
    assert finding["location"] == {
        "file": "examples/wrong/linear.py",
        "line": 31,
        "column": 41,
        "end_line": 31,
        "end_column": 59,
    }
    assert finding["evidence"]["worst_z"] == "inf"
    assert finding["excerpt"]["lines"][0] == [29, "    def backward(ctx, grad_output):"]
    assert target["gradcheck"]["slow"] == "fail"
    assert target["checks"][1]["resolution"] == 3e-10


def test_str_is_full_at_80_columns(report: Report) -> None:
    assert str(report) + "\n" == render(report, "full", width=80)


@pytest.mark.parametrize("width", [20, 40, 100])
def test_on_a_rich_console(report: Report, width: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(report)
    text = out.getvalue()
    assert "[4, 3]" in text
    assert report.findings[0].reproduce.replace(" ", "") in "".join(text.split())
    assert "\x1b" not in text


class _Elements(HTMLParser):
    """The start tags of a text, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_notebook_shows_the_page_in_a_frame(hostile: Callable[[str], Report]) -> None:
    report = hostile("</iframe><script>alert('[red]')</script>")
    ((tag, attributes),) = _Elements(report._repr_html_()).found
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == render(report, "html")
    tags = [name for name, _ in _Elements(attributes["srcdoc"] or "").found]
    assert tags.count("script") == 1  # the page's own


def test_html_is_escaped_and_self_contained(
    hostile: Callable[[str], Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)  # it can't be imported
    html = hostile("<script>alert('[red]')</script>")._repr_html_()
    assert html.startswith("<pre style=")
    assert html.endswith("</pre>")
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#x27;[red]&#x27;)&lt;/script&gt;" in html
    assert "http" not in html


class _Stream(io.StringIO):
    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (_Stream("utf-8", False), {}, {"width": 80, "color": False, "ascii": False}),
        (_Stream("utf-8", True), {"COLUMNS": "40"}, {"width": 40, "color": True, "ascii": False}),
        (_Stream("ascii", True), {"COLUMNS": "90"}, {"width": 90, "color": True, "ascii": True}),
        (_Stream("latin-1", False), {}, {"width": 80, "color": False, "ascii": True}),
        (_Stream("utf-8", True), {"COLUMNS": "9", "NO_COLOR": "1"}, {"color": False}),
        (_Stream("utf-8", True), {"TERM": "dumb"}, {"color": False}),
        (
            _Stream("utf-8", False),
            {"FORCE_COLOR": "1", "COLUMNS": "55"},
            {"color": True, "width": 55},
        ),
        (_Stream("utf-8", False), {"COLUMNS": "wide"}, {"width": 80}),
    ],
)
def test_what_a_stream_can_show(
    stream: _Stream,
    variables: dict[str, str],
    expected: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = stream_options(stream)
    assert {key: found[key] for key in expected} == expected


def test_json_in_pieces_is_that_in_one(report: Report) -> None:
    report.targets[0].notes.append("\ud83d \x1b \x7f é\n2")
    report.findings[0].message = "\ud83d \x7f"
    report.environment = {"empty": {}, "none": [], "deep": {"a": [1, {"b": float("inf")}]}}
    whole = json.dumps(report.to_dict(), indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    assert "".join(json_parts(report)) == whole + "\n"
    nothing = Report()
    assert "".join(json_parts(nothing)) == json.dumps(nothing.to_dict(), indent=2) + "\n"


@pytest.mark.parametrize("format", ["full", "concise", "json"])
def test_no_piece_grows_with_the_report(format: str) -> None:
    pieces = {}
    for count in (2_000, 4_000):
        pieces[count] = list(render_parts(report_of(count, 2), format, width=100))
        assert "".join(pieces[count]) == render(report_of(count, 2), format, width=100)
    largest = {count: max(map(len, found)) for count, found in pieces.items()}
    # The numbers of lines have one digit more at most.
    assert largest[4_000] <= 1.2 * largest[2_000]
    assert largest[4_000] < 0.5 * sum(map(len, pieces[4_000]))
