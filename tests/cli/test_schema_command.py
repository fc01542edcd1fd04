"""``gradlint schema``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from gradlint.cli.entry import main


@pytest.mark.parametrize("kind", ["spec", "report", "settings"])
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


def test_the_schema_of_settings_accepts_what_is_read_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["schema", "settings"]) == 0
    validator = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out))
    right = {
        "select": ["GL4"],
        "ignore": "GL503, GL9",
        "device": ["cpu", "cuda"],
        "dtypes": "float64,float32",
        "per-target-ignores": {"legacy/*.py": ["GL7"]},
        "severities": {"GL604": "info", "GL7": "off"},
        "fail-on": "uncovered",
        "fail_on": "error",
        "timeout": 20,
        "memory": 100,
        "import": ["numpy"],
        "paths": ["src"],
        "baseline": "base.json",
        "require-coverage": ["src"],
        "max-failures": 3,
        "untrusted": True,
    }
    for key, value in right.items():
        assert validator.is_valid({key: value}), key
    wrong = {
        "selct": ["GL4"],
        "fail-on": "never",
        "order": 3,
        "timeout": 0,
        "dtypes": ["float8"],
        "per-target-ignores": ["GL7"],
        "untrusted": 1,
        "max-failures": 0,
    }
    for key, value in wrong.items():
        assert not validator.is_valid({key: value}), key
