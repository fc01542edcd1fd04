"""A cache of builds for one test, and a source that compiles in a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.native.recipe import Recipe


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of builds."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(folder))
    return folder


@pytest.fixture
def small(tmp_path: Path, cache: Path) -> Recipe:
    """A library of one function that includes a header of its own and nothing of torch's."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "answer.h").write_text("#define ANSWER 42\n", encoding="utf-8")
    source = folder / "small.cpp"
    source.write_text(
        '#include "answer.h"\nextern "C" int answer() { return ANSWER; }\n', encoding="utf-8"
    )
    return Recipe("small", (str(source),))
