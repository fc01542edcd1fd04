"""Shell completion: commands, options and the values of options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gradlint.cli.entry import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gradlint val", ["validate"]),
        ("gradlint check --sel", ["--select"]),
        ("gradlint check --select GL401,GL50", ["GL401,GL501", "GL401,GL502", "GL401,GL503"]),
        ("gradlint explain wrong_j", ["wrong_jvp"]),
        ("gradlint check --fail-on i", ["info", "inconclusive"]),
        ("gradlint check --dtype float64,b", ["float64,bfloat16"]),
        ("gradlint explain --output-format t", ["text"]),
        ("gradlint chekc --sel", []),
    ],
)
def test_bash_is_offered(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    offered: list[str],
) -> None:
    monkeypatch.setenv("_GRADLINT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == offered


def test_hooks_pass_over_other_files(gradlint: Callable[..., Any], tmp_path: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    entries = {hook["id"]: hook["entry"].split()[1:] for hook in hooks}
    assert sorted(entries) == ["gradlint-check", "gradlint-validate"]
    assert all(hook["language"] == "system" and hook["require_serial"] for hook in hooks)
    (tmp_path / "settings.yaml").write_text("name: of another tool\n", encoding="utf-8")
    (tmp_path / "script.py").write_text("raise SystemExit('run')\n", encoding="utf-8")
    wrong = 'forward: "x * x"\nbackward: {x: "x * grad_output"}\ninputs:\n  x: {shap: [3]}\n'
    (tmp_path / "wrong.yaml").write_text(wrong, encoding="utf-8")
    for words in entries.values():
        assert gradlint(tmp_path, *words, "settings.yaml", "script.py").returncode == 0
        done = gradlint(tmp_path, *words, "settings.yaml", "wrong.yaml")
        assert done.returncode == 2
        assert "wrong.yaml:4" in done.stdout + done.stderr
