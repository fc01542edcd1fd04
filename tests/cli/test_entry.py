"""What the command line looks at before it starts the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.cli import entry as _entry

NAMED = [
    '[tool.gradlint]\ncache = ".gradlint"\n',
    '[tool.gradlint]\nseed = 1\ncluster="tcp://host"\n',
    '[ tool . "gradlint" ]  # ours\n"cache" = ".gradlint"\n',
    "[tool]\ngradlint.cache = 'kept'\n",
    '[tool]\ngradlint = {seed = 1, cache = "kept"}\n',
    'tool.gradlint.cache = "kept"\n',
    '[project]\nname = "x"\n\n[tool.gradlint]\r\n  cache = "kept"\r\n',
    "[tool.other]\ncache = 1\n[tool.gradlint]\ncache = 'kept'\n[tool.third]\n",
]

OTHER = [
    '[project.optional-dependencies]\ncache = ["fsspec"]\n',
    "[tool.other]\ncache = true\n",
    "[tool.gradlint_other]\ncache = true\n",
    '[[tool.other.parts]]\ncluster = "a"\n',
    "[tool.gradlint]\nseed = 1\n\n[tool.other]\ncache = true\n",
    "[tool.gradlint]\ncached = 1\nno_cache = 1\n",
    "[" + " " * 500_000,
    "[" * 500_000,
    "",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_cache_that_is_set_puts_the_server_off(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert _entry._may_remember(["check", "ops.py"])


@pytest.mark.parametrize("text", OTHER)
def test_a_cache_of_something_else_does_not(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRADLINT_CACHE", raising=False)
    monkeypatch.delenv("GRADLINT_CLUSTER", raising=False)
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert not _entry._may_remember(["check", "ops.py"])
    assert _entry._may_remember(["check", "ops.py", "--cache=kept"])
