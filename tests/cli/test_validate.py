"""``gradlint validate``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradlint
from gradlint.cli import validate
from gradlint.cli.entry import main

#: Other processes find this package even where it is not installed.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(gradlint.__file__).parents[1])}

RIGHT = "op: a:b\ndims: {N: [1, 4]}\ninputs: {x: {shape: [N]}}\n"
WRONG = "op: a:b\ninputs: {x: {shape: [N], domian: reals}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right.yaml").write_text(RIGHT)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "inferred.yml").write_text("op: a:b\n")
    (tmp_path / "other.yaml").write_text("site_name: not a spec\n")
    return tmp_path


def test_right_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "right.yaml", "."]) == 0
    assert capsys.readouterr().out == (
        "right.yaml: ok, 2 samples\nbelow/inferred.yml: ok, inputs to be inferred\n"
    )


def test_wrong_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.yaml").write_text(WRONG)
    assert main(["validate", "wrong.yaml", "right.yaml"]) == 2
    assert capsys.readouterr().out == (
        "wrong.yaml:2:22: unknown dim `N` (add it to `dims`)\n"
        "wrong.yaml:2:26: unknown key `domian` (did you mean `domain`?)\n"
        "right.yaml: ok, 2 samples\n"
        "1 of 2 specs wrong, 2 mistakes.\n"
    )


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.yaml").write_text(WRONG)
    assert main(["validate", "right.yaml", "wrong.yaml", "--output-format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["schema_version"] == 1
    right, wrong = found["specs"]
    assert right == {"path": "right.yaml", "ok": True, "samples": ["N=1", "N=4"], "problems": []}
    assert (wrong["path"], wrong["ok"]) == ("wrong.yaml", False)
    assert wrong["problems"][1] == {
        "line": 2,
        "column": 26,
        "message": "unknown key `domian`",
        "hint": "did you mean `domain`?",
    }


def test_a_file_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "rihgt.yaml"]) == 2
    assert "did you mean `right.yaml`?" in capsys.readouterr().out


def test_a_folder_without_specs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert main(["validate", "empty"]) == 5
    assert "nothing was checked" in capsys.readouterr().out


def test_markup_is_printed_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.yaml").write_text('op: a:b\n"[red]x[/]": 1\n')
    assert main(["validate", "odd.yaml"]) == 2
    assert "unknown key `[red]x[/]`" in capsys.readouterr().out


def test_nothing_heavy_is_imported(folder: Path) -> None:
    code = (
        "import sys; from gradlint.cli.entry import main\n"
        "assert main(['validate', 'right.yaml']) == 0\n"
        "assert main(['schema', 'spec', '-o', 's.json']) == 0\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)


def test_what_takes_long_is_ended(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(path: str) -> dict[str, Any]:
        while True:
            pass

    monkeypatch.setattr(validate, "_judged", endless)
    monkeypatch.setattr(validate, "_SECONDS", 1)
    assert main(["validate", "right.yaml"]) == 2
    assert capsys.readouterr().out == (
        "right.yaml: checking it takes more than 1 s or 256 MB: not a spec\n"
        "1 of 1 spec wrong, 1 mistake.\n"
    )
