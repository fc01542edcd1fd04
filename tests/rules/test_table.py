"""The table equals the files on disk, and selection picks what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradlint.rules
from gradlint.model.report import SEVERITIES
from gradlint.model.rule import Rule
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE, by_code, select_rules, with_names

FAMILIES = {
    "GL0": ("loading",),
    "GL1": ("contract",),
    "GL2": ("shape",),
    "GL3": ("finite",),
    "GL4": ("value",),
    "GL5": ("order",),
    "GL6": ("state",),
    "GL7": ("layout",),
    "GL8": ("precision", "device"),
    "GL9": ("transforms",),
}


def files() -> set[str]:
    """Modules of rules: files of the family folders, without private ones."""
    root = Path(gradlint.rules.__file__).parent
    return {
        f"gradlint.rules.{family}.{path.stem}"
        for families in FAMILIES.values()
        for family in families
        for path in (root / family).glob("*.py")
        if not path.stem.startswith("_")
    }


def module_of(rule: Rule) -> str:
    return f"gradlint.rules.{rule.family}.{rule.name}"


def test_table_equals_the_files_on_disk() -> None:
    assert {module_of(rule) for rule in CATALOGUE} == files()


def test_table_is_sorted_and_unique() -> None:
    codes = [rule.code for rule in CATALOGUE]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.code)
def test_rule_is_named_after_its_file_and_family(rule: Rule) -> None:
    assert re.fullmatch(r"GL\d{3}", rule.code)
    _, _, family, name = module_of(rule).split(".")
    assert family in FAMILIES[rule.code[:3]]
    assert name == rule.name
    assert rule.severity in SEVERITIES
    assert rule.order == (2 if rule.code.startswith("GL5") else 1)
    assert rule.summary
    assert not rule.summary.endswith(".")


def test_importing_the_table_does_not_import_torch() -> None:
    program = "import gradlint.rules.catalogue, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        (None, (), {rule.code for rule in CATALOGUE}),
        (("GL101",), (), {"GL101"}),
        (("gl10",), (), {"GL101", "GL102", "GL103", "GL104"}),
        (("wrong_gradient",), (), {"GL401"}),
        (("GL2",), ("GL203",), {"GL201", "GL202", "GL204"}),
        (("GL203",), ("GL2",), {"GL203"}),
        (("GL101",), ("GL101",), set()),
        (
            ("ALL",),
            ("GL0", "GL1", "GL2", "GL3", "GL4", "GL501", "GL6", "GL7", "GL8", "GL9"),
            {"GL502", "GL503"},
        ),
        (None, ("ALL",), set()),
        (("nonsense", "GL99"), (), set()),
    ],
)
def test_most_specific_selector_wins(
    select: tuple[str, ...] | None, ignore: tuple[str, ...], expected: set[str]
) -> None:
    rules = select_rules(Settings(select=select, ignore=ignore), CATALOGUE)
    assert {rule.code for rule in rules} == expected
    assert [rule.code for rule in rules] == sorted(expected)


def test_rules_are_found_by_code_and_name() -> None:
    found = by_code("gl101")
    assert found is not None
    assert found.name == "wrong_number_of_gradients"
    assert by_code("missing_gradient") is by_code("GL103")
    assert by_code("GL1") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("differs: see GL401", "differs: see GL401 (wrong gradient)"),
        ("see GL103, GL302", "see GL103 (missing gradient), GL302 (nan in backward)"),
        ("GL401 wrong_gradient did not judge it", "GL401 wrong_gradient did not judge it"),
        ("GL401: wrong gradient for `x`", "GL401: wrong gradient for `x`"),
        ("see GL401 (wrong gradient)", "see GL401 (wrong gradient)"),
        ("see GL606; GL606 says why", "see GL606 (nondeterministic); GL606 says why"),
        ("write `# gradlint: ignore[GL401] why`", "write `# gradlint: ignore[GL401] why`"),
        ("# gradlint: ignore[GL401] why", "# gradlint: ignore[GL401] why"),
        ("run gradlint explain GL401", "run gradlint explain GL401"),
        ("check op --select GL401,GL606 again", "check op --select GL401,GL606 again"),
        ("all rules of GL4", "all rules of GL4"),
        ("GL499 is none", "GL499 is none"),
        ("file ops_GL401.py, or a/GL401", "file ops_GL401.py, or a/GL401"),
        ("", ""),
    ],
)
def test_a_code_stands_with_its_name(text: str, expected: str) -> None:
    assert with_names(text) == expected
    assert with_names(expected) == expected
