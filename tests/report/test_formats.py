"""What holds of every format: each verdict, hostile text, and pieces of a bounded size."""

from __future__ import annotations

import json
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from gradlint.base.errors import GradlintError
from gradlint.model.report import Report, RunError
from gradlint.report.render import FORMATS, check_installed, render
from gradlint.rules.catalogue import CATALOGUE

#: A title, concealed text, C1, right to left, no width, half of a pair, no character, and syntax of
#: everything: markup, XML, CDATA, Markdown, templates, and commands of CI systems.
HOSTILE = (
    "[bold]\x1b]0;title\x07\x9b2J\u202e\u200b\ud83d\ufffe\x00\x7f<script>alert(1)</script>"
    "]]>&amp;\"'`|**{{ 7*7 }}[a](http://x)%0A::error::\r\n::error file=x::y\n##vso[task.x]##[group]"
)


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order; the elements and attributes seen."""

    VOID = frozenset(("meta", "input", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(text: str, format: str) -> None:
    """Read ``text`` by a parser that knows nothing of gradlint."""
    if format in ("json", "sarif", "gitlab"):
        json.loads(text, parse_constant=lambda word: pytest.fail(word))
    elif format == "jsonl":
        for line in text.splitlines():
            json.loads(line, parse_constant=lambda word: pytest.fail(word))
    elif format == "junit":
        ElementTree.fromstring(text)
    elif format == "html":
        parser = Balanced()
        parser.feed(text)
        parser.close()
        assert parser.open == []
    elif format == "markdown":
        MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    elif format == "github":
        assert all(line.startswith("::") for line in text.splitlines()[:-1])


@pytest.mark.parametrize("format", FORMATS)
def test_each_verdict(format: str, every_verdict: Report) -> None:
    every_verdict.errors = [RunError("usage", "no such target: pkg.ops:Absent")]
    text = render(every_verdict, format, width=80, rules=CATALOGUE)
    parsed(text, format)
    assert text.endswith("\n")
    assert "wrong gradient for " in text
    assert "SIGSEGV" in text


@pytest.mark.parametrize("format", FORMATS)
def test_nothing(format: str) -> None:
    text = render(Report(), format, width=80)
    parsed(text, format)


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_text_stays_text(format: str, hostile: Callable[[str], Report]) -> None:
    report = hostile(HOSTILE)
    report.errors = [RunError("internal", HOSTILE)]
    text = render(report, format, width=80, rules=CATALOGUE)
    parsed(text, format)
    hidden = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs")} - {"\n"}
    assert hidden == set()
    assert "\u3164" not in text
    if format == "markdown":  # what is left of it is in code
        text = MarkdownIt("gfm-like", {"linkify": False}).render(text)
        assert "<a " not in text
    if format in ("html", "junit", "markdown"):
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text
    assert " 49 " not in text


@pytest.mark.parametrize("format", FORMATS)
def test_names_of_files_are_escaped(format: str, report: Report) -> None:
    path = "a folder/b:c\nd\te,f%25é.py"
    finding = report.findings[0]
    finding.location = type(finding.location)(path, 3, 5)  # type: ignore[misc]
    report.targets[1].target = f"{path}:Op"
    text = render(report, format, width=200, rules=CATALOGUE)
    parsed(text, format)
    shown = {
        "sarif": '"uri": "a%20folder/b%3Ac%0Ad%09e%2Cf%2525%C3%A9.py"',
        "github": "file=a folder/b%3Ac%0Ad",
        "gitlab": json.dumps(path),
        "json": json.dumps(path),
        "jsonl": json.dumps(path),
    }.get(format, "a folder/b:c d")
    assert shown in text


@pytest.mark.parametrize("format", ["junit", "sarif", "github", "gitlab", "markdown", "jsonl"])
def test_as_it_is(format: str, every_verdict: Report, page: SnapshotAssertion) -> None:
    assert render(every_verdict, format, width=80) == page


@pytest.mark.parametrize(("format", "package"), [("junit", "junitparser"), ("html", "jinja2")])
def test_what_is_not_installed_is_named(
    format: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(GradlintError) as caught:
        check_installed(format)
    assert str(caught.value) == (
        f"{format}: the format {format} needs {package}\nrun `pip install 'gradlint[{format}]'`"
    )
    with pytest.raises(GradlintError):
        render(Report(), format)
