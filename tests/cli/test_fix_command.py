"""``gradlint fix`` and ``gradlint check --suggest``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.repair.operators import operator, tensor

TEXT = operator(
    "ctx.scale = scale\nreturn x * scale",
    "return grad_output * ctx.scale",
    arguments="x, scale",
    samples=f"{tensor(3, 4)}, 1.5",
)
WRONG, RIGHT = "return grad_output * ctx.scale\n", "return grad_output * ctx.scale, None\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ops.py").write_text(TEXT)
    return tmp_path


def test_a_diff_is_shown_and_nothing_written(gradlint: Command, folder: Path) -> None:
    done = gradlint(folder, "fix", "ops.py", "--seed", "1")
    assert done.returncode == 1
    assert "ops.py:Op  GL101" in done.stdout
    assert "Return `None` for `scale`." in done.stdout
    assert f"-        {WRONG}+        {RIGHT}" in done.stdout
    assert "1 of 1 failing operator has a verified fix." in done.stdout
    assert (folder / "ops.py").read_text() == TEXT
    found = subprocess.run(
        ["git", "apply", "-"], input=done.stdout, text=True, cwd=folder, capture_output=True
    )
    assert found.returncode == 0, found.stderr
    assert (folder / "ops.py").read_text() == TEXT.replace(WRONG, RIGHT)


def test_a_fix_is_written(gradlint: Command, folder: Path) -> None:
    done = gradlint(folder, "fix", "ops.py:Op", "--write", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 written." in done.stdout
    assert (folder / "ops.py").read_text() == TEXT.replace(WRONG, RIGHT)
    again = gradlint(folder, "fix", "ops.py:Op", "--seed", "1")
    assert again.returncode == 0
    assert "Nothing to fix." in again.stdout


def test_two_operators_of_one_file_are_written_together(gradlint: Command, folder: Path) -> None:
    both = TEXT + "\n\n" + TEXT[TEXT.index("class Op") :].replace("class Op", "class Other")
    (folder / "ops.py").write_text(both)
    done = gradlint(folder, "fix", "ops.py", "--write", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "ops.py").read_text() == both.replace(WRONG, RIGHT)


def test_findings_are_selected(gradlint: Command, folder: Path) -> None:
    done = gradlint(folder, "fix", "ops.py", "--select", "GL4", "--seed", "1")
    assert done.returncode == 0
    assert "Nothing to fix." in done.stdout


def test_diff_and_write_exclude_each_other(gradlint: Command, folder: Path) -> None:
    done = gradlint(folder, "fix", "ops.py", "--write", "--diff")
    assert done.returncode == 2
    assert "--diff and --write exclude each other" in done.stderr


def test_without_libcst_it_says_what_to_install(
    gradlint: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for words in (["fix", "ops.py"], ["check", "ops.py", "--suggest"]):
        done = gradlint(folder, *words)
        assert done.returncode == 2
        assert 'pip install "gradlint[fix]"' in done.stderr


def test_reports_carry_the_change(gradlint: Command, folder: Path) -> None:
    done = gradlint(
        *(folder, "check", "ops.py", "--suggest", "--seed", "1", "--select", "GL1"),
        *("--report", "json=r.json", "--report", "sarif=r.sarif", "--report", "html=r.html"),
    )
    assert done.returncode == 1
    assert "Return `None` for `scale`." in done.stdout
    assert "+        return grad_output * ctx.scale, None" in done.stdout
    report = json.loads((folder / "r.json").read_text())
    (finding,) = report["targets"][0]["findings"]
    fix = finding["fix"]
    assert fix["titles"] == ["return `None` for `scale`"]
    assert fix["checks"] > 30  # of all rules, not only of the selected
    (replacement,) = fix["replacements"]
    assert replacement["text"] == ", None"
    place = replacement["location"]
    line = TEXT.splitlines()[place["line"] - 1]
    assert line[: place["column"] - 1].endswith("ctx.scale")
    sarif = json.loads((folder / "r.sarif").read_text())
    (change,) = sarif["runs"][0]["results"][0]["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "ops.py"
    assert change["replacements"][0]["insertedContent"] == {"text": ", None"}
    assert "+        return grad_output * ctx.scale, None" in (folder / "r.html").read_text()
