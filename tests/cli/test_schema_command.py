"""``gradlint schema``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradlint.cli.entry import main


@pytest.mark.parametrize("kind", ["spec", "report"])
def test_to_the_standard_output(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gradlint.schema.json"
    assert main(["schema", "spec", "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(path.read_text())["title"] == "gradlint op spec"


def test_an_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "spce"]) == 2
    assert "did you mean `spec`?" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "spec", "-o", str(tmp_path / "no" / "s.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err
