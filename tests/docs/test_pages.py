"""The pages say what the program does: their commands print what stands there, the tables of rules
are the catalogue, and every file, name in a file, and link that they mention exists.

After a change of rules or of wording, ``.ci/docs`` writes output and tables anew.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradlint.report.wording import FAMILIES
from gradlint.rules.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RULES = ROOT / "gradlint" / "docs" / "rules.md"
PAGES = [
    README,
    ROOT / "gradlint" / "ARCHITECTURE.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    ROOT / "kernels" / "README.md",
    ROOT / "tests" / "benchmarks" / "README.md",
    *sorted((ROOT / "gradlint" / "docs").glob("*.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: Endings by which a word in backticks is known to be a file of this repository.
_ENDINGS = r"py|md|cu|h|cpp|yaml|toml|txt|json"
_FILE = re.compile(rf"^([\w./-]+\.(?:{_ENDINGS})|[\w.-]+/[\w./-]*)(?::([A-Za-z_][\w.]*))?$")

#: A program that is run with ``python -m``.
_MODULE = re.compile(r"^(tests(?:\.\w+)+)$")

#: Words with these beginnings are no files of this repository, but those of an imagined user.
_IMAGINED = (
    *("path/", "src/", "legacy/", "file.py", "tests/samples.py", "report.json", ".venv/"),
    *("gradlint-baseline.json", "2/4"),
)


def fences(page: Path) -> list[tuple[str, str]]:
    """(language, text) of every fenced block of ``page``."""
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def prose(page: Path) -> str:
    """``page`` without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


SESSIONS = [text for page in PAGES for language, text in fences(page) if language == "console"]
COMMANDS = [session.splitlines()[0].removeprefix("$ ") for session in SESSIONS]


def test_there_are_exactly_two_set_up_commands() -> None:
    commands = [text for language, text in fences(README) if language == "sh"]
    assert len(commands) == 2
    for command in commands:
        assert command.count("\n") == 1
        assert command.startswith("python -m venv .venv && .venv/bin/pip install ")
        assert "-c .ci/constraints.txt" in command
    check, tests = commands
    assert re.search(r"&& \.venv/bin/gradlint check examples/right/\S+$", check)
    assert "-m pytest" in tests


def test_the_tables_of_rules_are_the_catalogue() -> None:
    text = RULES.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (GL\d{3}) \| `(\w+)` \| (\w+) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(rule.code, rule.name, rule.severity, rule.summary) for rule in CATALOGUE]


def test_the_readme_and_the_page_of_rules_have_all_families() -> None:
    shown = re.findall(r"^\| (GL\d) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    headings = re.findall(r"^## (GL\d):", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == headings == sorted({rule.code[:3] for rule in CATALOGUE}) == list(FAMILIES)


LINKS = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", prose(page))]


def shown(part: Path | str) -> str:
    """A page by its name, anything else as it is."""
    return part.name if isinstance(part, Path) else part


@pytest.mark.parametrize(("page", "link"), LINKS, ids=shown)
def test_links_lead_somewhere(page: Path, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]


def mentioned() -> Iterator[tuple[Path, str, str]]:
    """(page, file, name in it or "") of every word in backticks that names a file here."""
    for page in PAGES:
        words = {word for text in re.findall(r"`([^`\n]+)`", prose(page)) for word in text.split()}
        for word in sorted(words):
            module = _MODULE.match(word)
            if module:
                path = module[1].replace(".", "/")
                yield page, path + ("/__main__.py" if (ROOT / path).is_dir() else ".py"), ""
            found = _FILE.match(word)
            if found and not word.startswith(_IMAGINED):
                yield page, found[1], found[2] or ""


@pytest.mark.parametrize(("page", "file", "name"), [*mentioned()], ids=shown)
def test_files_and_names_exist(page: Path, file: str, name: str) -> None:
    """A path is seen from the root, from ``gradlint/``, or from the folder of the page."""
    places = (ROOT / file, ROOT / "gradlint" / file, page.parent / file)
    there = [path for path in places if path.exists()]
    assert there, f"{page.name} mentions {file}, which does not exist"
    if name:
        assert name in defined(there[0]), f"{page.name}: {file} does not define {name}"


def defined(path: Path) -> set[str]:
    """The names that a Python file defines, those in classes as ``Class.name``."""
    if path.suffix != ".py":
        return set()
    found: set[str] = set()

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            found.update(prefix + item.id for item in targets if isinstance(item, ast.Name))

    walk(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


@pytest.mark.parametrize("session", SESSIONS, ids=COMMANDS)
def test_commands_print_what_the_pages_show(gradlint: Callable[..., Any], session: str) -> None:
    command, *shown = session.splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "gradlint"
    done = gradlint(ROOT, *arguments, NO_COLOR="1")
    assert done.returncode in (0, 1), done.stderr
    assert normal("\n".join(shown)) in normal(done.stdout)


def normal(text: str) -> str:
    """Words only: numbers and line breaks vary with the machine; ``…`` ends what is shown."""
    words = text.removesuffix("…").split()
    return " ".join(re.sub(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", "0", word) for word in words)
