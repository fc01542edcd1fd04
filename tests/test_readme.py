"""README.md shows what the program does: its commands run, and print what stands there.

After a change of rules or wording, ``.ci/readme`` writes both anew.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.rules.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SESSIONS = [text for language, text in FENCES if language == "console"]
COMMANDS = [session.splitlines()[0].removeprefix("$ ") for session in SESSIONS]


def test_there_are_exactly_two_set_up_commands() -> None:
    commands = [text for language, text in FENCES if language == "sh"]
    assert len(commands) == 2
    for command in commands:
        assert command.count("\n") == 1
        assert command.startswith("python -m venv .venv && .venv/bin/pip install ")
        assert "-c .ci/constraints.txt" in command
    check, tests = commands
    assert re.search(r"&& \.venv/bin/gradlint check examples/right/\S+$", check)
    assert "-m pytest" in tests


def test_the_table_of_rules_is_the_catalogue() -> None:
    rows = re.findall(r"^\| (GL\d{3}) \| `(\w+)` \| (\w+) \| (.*) \|$", README, re.MULTILINE)
    assert rows == [(rule.code, rule.name, rule.severity, rule.summary) for rule in CATALOGUE]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("session", SESSIONS, ids=COMMANDS)
def test_tour_prints_what_the_readme_shows(gradlint: Callable[..., Any], session: str) -> None:
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
