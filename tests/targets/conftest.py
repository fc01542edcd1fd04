"""A folder of its own for each test, as working directory, with imports undone afterwards."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """``write("pkg/mod.py", text)`` makes a file below the working directory."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)

    def write(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        held = vars(sys.modules[name])
        places = [held.get("__file__"), *held.get("__path__", [])]
        if any(str(place).startswith(str(tmp_path)) for place in places):
            del sys.modules[name]
