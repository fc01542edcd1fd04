from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from gradlint.base.errors import GradlintError
from gradlint.cli.explain import explain
from gradlint.cli.rules import rules
from gradlint.model.rule import Rule
from gradlint.report.explain import add_catalogue, add_rule, find_rules, sections
from gradlint.report.text import Page

TEXT = '''Wrong gradient.

What it finds
-------------
Compares what `backward` returns with what the function *really* does, along many directions
[5] of the input.

- one item that is long enough to be set on two lines of this page
- another

Bad
---

```python
class Op:  # [red]

    title = """
Not a heading
-------------
"""
```

Good
----
```python
x = 1
```

How it looks
------------
::

    x.py:1:1  GL401  wrong gradient for `x`

References
----------
Griewank and Walther, 2008.
'''


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> tuple[Rule, ...]:
    """Three rules with known texts in the place of the real table."""
    found = (
        Rule(
            "GL101", "contract", "wrong_number_of_gradients", "error", "not one gradient an input"
        ),
        Rule("GL401", "value", "wrong_gradient", "error", "the gradient is wrong"),
        Rule("GL501", "order", "wrong_second_derivative", "warning", "so is the second"),
    )
    monkeypatch.setattr("gradlint.rules.catalogue.CATALOGUE", found)
    monkeypatch.setattr("gradlint.model.rule._docstring", lambda path: TEXT)
    return found


def run(command: object, *args: str, columns: int = 80) -> str:
    app = typer.Typer()
    app.command()(command)  # type: ignore[type-var]
    env = {"COLUMNS": str(columns), "NO_COLOR": "1", "FORCE_COLOR": None}
    result = CliRunner().invoke(app, list(args), env=env, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["GL401"], ["GL401"]),
        (["gl401"], ["GL401"]),
        (["gl"], ["GL101", "GL401", "GL501"]),
        (["GL4", "GL1"], ["GL401", "GL101"]),
        (["wrong_gradient"], ["GL401"]),
        (["Wrong-Gradient", "GL401"], ["GL401"]),
    ],
)
def test_rules_are_found(table: tuple[Rule, ...], words: list[str], codes: list[str]) -> None:
    assert [rule.code for rule in find_rules(words, table)] == codes


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("GL411", "did you mean `GL401`? `gradlint rules` lists all"),
        ("wrong_gradeint", "did you mean `wrong_gradient`? `gradlint rules` lists all"),
        ("zzz", "`gradlint rules` lists all"),
        ("", "`gradlint rules` lists all"),
    ],
)
def test_unknown_rules(table: tuple[Rule, ...], word: str, hint: str) -> None:
    with pytest.raises(GradlintError) as caught:
        find_rules([word], table)
    assert (caught.value.message, caught.value.hint) == (f"no rule is called {word!r}", hint)
    assert caught.value.exit_code == 2


def test_sections_are_split_outside_of_code() -> None:
    title, found = sections(TEXT)
    assert title == "Wrong gradient."
    assert [heading for heading, _ in found] == [
        "What it finds",
        "Bad",
        "Good",
        "How it looks",
        "References",
    ]
    assert "Not a heading\n-------------" in dict(found)["Bad"]
    assert dict(found)["References"] == "Griewank and Walther, 2008."


def test_a_rule_at_40_columns(page: SnapshotAssertion) -> None:
    assert run(explain, "wrong_gradient", columns=40) == page


def test_code_is_coloured_only_when_asked(table: tuple[Rule, ...]) -> None:
    page = Page(80)
    add_rule(page, table[1], color=True)
    colored = page.text(color=True)
    assert "\x1b[" in colored
    assert "[red]" in colored
    assert "    \x1b[94mclass\x1b[0m" in colored or "class\x1b[0m" in colored
    assert "\x1b" not in page.text()


def test_json() -> None:
    (entry,) = json.loads(run(explain, "GL501", "--output-format", "json"))
    assert entry["code"] == "GL501"
    assert entry["order"] == 2
    assert entry["family"] == "higher order"
    assert entry["sections"]["Good"] == "```python\nx = 1\n```"
    listed = json.loads(run(rules, "--output-format", "json"))
    assert [item["code"] for item in listed] == ["GL101", "GL401", "GL501"]
    assert "text" not in listed[0]


def test_several_rules_are_separated() -> None:
    text = run(explain, "GL1", "GL4")
    assert text.count("\n" + "-" * 72 + "\n") == 1
    assert text.index("GL101  wrong_number") < text.index("GL401  wrong_gradient")


def test_catalogue(page: SnapshotAssertion) -> None:
    assert run(rules) == page


def test_catalogue_at_40_columns(page: SnapshotAssertion, table: tuple[Rule, ...]) -> None:
    made = Page(40)
    add_catalogue(made, table[2:])
    assert made.text() == page


def test_neither_imports_torch() -> None:
    code = (
        "import sys, gradlint.report.explain, gradlint.cli.explain, gradlint.cli.rules, "
        "gradlint.cli.env, gradlint.model.settings, gradlint.environment; "
        "from gradlint.model.report import Report; from gradlint.report.render import render; "
        "render(Report()); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
