"""``gradlint check --show-settings``: every setting, and where it comes from."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradlint.model.resolve import DESCRIPTIONS, resolve_settings
from gradlint.model.settings import Settings
from gradlint.report.settings import settings_text
from gradlint.rules.catalogue import rule_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Command = Callable[..., Any]

TOML = """[project]
name = "x"

[tool.gradlint]
timeout = 20
paths = ["src dir", "pkg.mod:Name"]
baseline = "base.json"

[tool.gradlint.per-target-ignores]
"legacy \\"x\\"/*.py" = ["GL7", "wrong_gradient"]
"""


def test_every_setting_is_described() -> None:
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert fields - set(DESCRIPTIONS) == {"promised_dtypes"}
    assert set(DESCRIPTIONS) <= fields


def test_values_and_origins(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "pyproject.toml").write_text(TOML)
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "src dir").mkdir()
    done = gradlint(
        below, "check", "--show-settings", "--dtype", "float32", "--seed", "4",
        GRADLINT_ORDER="1",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split("  # ") for line in done.stdout.splitlines()[1:]]
    origins = {line[0].split(" = ")[0].strip(): line[-1] for line in lines}
    assert origins["timeout"] == "../pyproject.toml:5:1"
    assert origins["per-target-ignores"].startswith("../pyproject.toml")
    assert origins["order"] == "environment variable GRADLINT_ORDER"
    assert origins["dtypes"] == "--dtype"
    assert origins["jobs"] == "number of cores"
    assert origins["fail-on"] == "default"
    assert "# select" in origins
    # What is shown is a file with the same settings.
    table = tomllib.loads(done.stdout)["tool"]["gradlint"]
    assert table["timeout"] == 20
    assert table["paths"] == ["../src dir", "pkg.mod:Name"]
    assert table["baseline"] == "../base.json"
    assert table["seed"] == 4
    assert table["per-target-ignores"] == {'legacy "x"/*.py': ["GL7", "GL401"]}


def test_the_text_gives_the_same_settings(tmp_path: Path) -> None:
    settings = Settings(
        devices=("cpu", "cuda"), select=("GL4",), seed=3, fail_on="info", memory_mb=5,
        severities=(("GL604", "info"), ("GL7", "off")),
        per_target_ignores=(("a", ("GL1",)),), imports=("x",), max_failures=2, untrusted=True,
    )  # fmt: skip
    (tmp_path / "pyproject.toml").write_text(settings_text(settings, {}))
    assert resolve_settings({}, rules=rule_names(), cwd=tmp_path, environ={}) == settings


def test_a_mistake_is_still_one(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradlint]\nrequire-coverge = ['x']\n")
    done = gradlint(tmp_path, "check", "--show-settings")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pyproject.toml:2:1" in done.stderr
    assert "did you mean `require_coverage`?" in done.stderr
