"""Rules as text: the documentation of one, and the catalogue of all."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.syntax import Syntax
from rich.text import Text

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import escape, lines_of
from gradlint.base.text import did_you_mean
from gradlint.model.rule import Rule
from gradlint.report import wording
from gradlint.report.table import table
from gradlint.report.text import Page

_FENCE = re.compile(r"^(```+|~~~+)\s*(\w*)\s*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])\s+")


def find_rules(words: Sequence[str], rules: Sequence[Rule]) -> list[Rule]:
    """The rules that ``words`` name: codes, prefixes of codes, or names, in any case.

    Raises:
        GradlintError: a word names no rule; the nearest name is offered.
    """
    found: dict[str, Rule] = {}
    for word in words:
        folded = word.strip().lower().replace("-", "_")
        named = [
            rule
            for rule in rules
            if rule.name == folded or (folded and rule.code.lower().startswith(folded))
        ]
        if not named:
            choices = [text for rule in rules for text in (rule.code, rule.name)]
            hint = f"{did_you_mean(folded, choices)} `gradlint rules` lists all".lstrip()
            raise GradlintError(f"no rule is called {word!r}", hint=hint)
        found.update((rule.code, rule) for rule in named)
    return list(found.values())


def rule_dict(rule: Rule, *, text: bool = False) -> dict[str, Any]:
    """A rule as JSON-able values; ``text`` adds its documentation, as a whole and by heading."""
    entry: dict[str, Any] = {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "order": rule.order,
        "family": wording.FAMILIES.get(rule.code[:3], ""),
        "summary": rule.summary,
    }
    if text:
        entry["text"] = inspect.cleandoc(rule.text)
        entry["sections"] = dict(sections(rule.text)[1])
    return entry


def sections(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A rule's text as its first paragraph and pairs of heading and body.

    Headings are lines underlined with dashes, outside of fenced blocks.
    """
    lines = inspect.cleandoc(text).splitlines()
    parts: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    skip = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
            continue
        found = _FENCE.match(line)
        if found and (not fence or line.startswith(fence)):
            fence = "" if fence else found[1]
        if not fence and line.strip() and re.fullmatch(r"-{3,}\s*", following):
            parts.append((line.strip(), []))
            skip = True
        else:
            parts[-1][1].append(line)
    bodies = [(heading, "\n".join(body).strip("\n")) for heading, body in parts]
    return bodies[0][1], bodies[1:]


def add_rule(page: Page, rule: Rule, *, color: bool = False) -> None:
    """Add the whole text of ``rule``; code is highlighted if ``color``."""
    head = Text().append(rule.code, wording.STYLES.get(rule.severity, "bold"))
    head.append(f"  {rule.name}", "bold").append(f"  ({_level(rule)})")
    page.paragraph(head, hanging=2)
    page.paragraph(rule.summary)
    _, bodies = sections(rule.text)
    for heading, body in bodies:
        page.blank()
        page.line(heading, "bold underline" if color else "")
        if not color:
            page.line("-" * len(heading))
        _body(page, body, color)


def _level(rule: Rule) -> str:
    order = {1: "first order", 2: "second order"}.get(rule.order, f"order {rule.order}")
    return f"{rule.severity}, {order}"


def _body(page: Page, body: str, color: bool) -> None:
    prose: list[str] = []
    code: list[str] = []
    fence = language = ""
    start = len(page.lines)
    for line in [*body.splitlines(), ""]:
        found = _FENCE.match(line)
        if fence and found and line.startswith(fence):
            _code(page, code, language, color)
            fence, code = "", []
        elif fence:
            code.append(line)
        elif found or not line.strip():
            _prose(page, prose)
            prose = []
            if len(page.lines) > start:
                page.blank()
            if found:
                fence, language = found[1], found[2]
        elif _ITEM.match(line) and prose:
            _prose(page, prose)
            prose = [line]
        else:
            prose.append(line)
    _code(page, code, language, color)
    while page.lines and not page.lines[-1].plain:
        page.lines.pop()


def _prose(page: Page, lines: list[str]) -> None:
    """Add one paragraph or list item, wrapped at the page's width; indented text as it is."""
    if not lines:
        return
    if lines[0].startswith("    ") and not _ITEM.match(lines[0]):
        _code(page, textwrap.dedent("\n".join(lines)).splitlines(), "", False)
        return
    if lines[-1].rstrip().endswith("::"):  # reStructuredText's mark of a literal block
        lines = [*lines[:-1], lines[-1].rstrip().removesuffix(":").removesuffix(" :")]
        if lines == [":"]:
            return
    item = _ITEM.match(lines[0])
    text = Text(page.clean(" ".join(line.strip() for line in lines)))
    text.highlight_regex(r"`+[^`]+`+", "cyan")
    indent = len(item[1]) if item else 0
    page.paragraph(text, indent=indent, hanging=len(item[2]) + 1 if item else 0)


def _code(page: Page, lines: list[str], language: str, color: bool) -> None:
    if not lines:
        return
    if color and language == "python":
        source = "\n".join(escape(line, page.ascii) for line in lines)
        highlighted = Syntax("", "python", theme="ansi_dark", background_color="default")
        for text in highlighted.highlight(source).split("\n", allow_blank=False):
            page.line(Text("    ") + text)
        return
    for line in lines_of("\n".join(lines), page.ascii):
        page.line(Text(f"    {line}".rstrip()))


def add_catalogue(page: Page, rules: Sequence[Rule]) -> None:
    """Add all rules, family by family."""
    families: dict[str, list[Rule]] = {}
    for rule in sorted(rules, key=lambda rule: rule.code):
        families.setdefault(rule.code[:3], []).append(rule)
    longest = max((len(rule.name) for rule in rules), default=0)
    # Summaries need room next to the names; without it, every family is shown as records.
    fits = page.width >= longest + 54
    for family, members in families.items():
        page.blank()
        page.paragraph(Text(f"{family}  {wording.FAMILIES.get(family, '')}".rstrip(), "bold"))
        if not fits:
            for rule in members:
                head = Text(f"{rule.code}  {rule.name}  ")
                head.append(f"({_level(rule)})", "dim")
                page.paragraph(head, indent=2, hanging=2)
                page.paragraph(rule.summary, indent=6)
            continue
        rows = [
            [r.code, r.name.ljust(longest), r.severity.ljust(8), str(r.order), r.summary]
            for r in members
        ]
        table(page, ("code", "name", "severity", "order", "summary"), rows, wrapped=True)
