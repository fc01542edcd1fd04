"""Files that many processes import are compiled once, and nothing else changes."""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradlint.targets import bytecode


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file is known before or after, and no bytecode is written."""
    monkeypatch.setattr(bytecode, "_compiled", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    assert "source_to_code" not in vars(SourceFileLoader)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file that is read ahead, whose bytecode can be told from what its text says."""
    path = tmp_path / "ops.py"
    path.write_text("ANSWER = 1\n\ndef answer():\n    return ANSWER\n")
    bytecode.read_ahead(str(path))
    text = path.read_text().replace("1", "2")
    code = compile(text, str(path), "exec", dont_inherit=True)
    known = bytecode._compiled[str(path)]
    bytecode._compiled[str(path)] = replace(known, code=marshal.dumps(code))
    return str(path)


def imported(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("some_name", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_kept_is_what_python_would_compile(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text("def answer():\n    return 1\n")
    bytecode.read_ahead(str(path))
    python: Any = SourceFileLoader("ops", str(path))
    expected = python.source_to_code(path.read_bytes(), str(path))
    assert marshal.loads(bytecode._compiled[str(path)].code) == expected


def test_an_import_need_not_compile(path: str) -> None:
    assert imported(path).ANSWER == 1
    with bytecode.compiled_ahead():
        module = imported(path)
    assert module.ANSWER == 2
    assert module.answer.__code__.co_filename == path
    assert type(module.__loader__) is SourceFileLoader
    assert imported(path).ANSWER == 1


def test_a_file_that_changed_is_compiled(path: str) -> None:
    status = os.stat(path)
    Path(path).write_text(Path(path).read_text().replace("1", "3"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with bytecode.compiled_ahead():
        assert imported(path).ANSWER == 3


def test_another_file_is_compiled(path: str, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_bytes(Path(path).read_bytes())
    with bytecode.compiled_ahead():
        assert imported(str(other)).ANSWER == 1


@pytest.mark.parametrize("text", ["def answer(:\n", "PATTERN = '\\d'\n", "x = '\0'\n"])
def test_what_raises_or_warns_is_left_to_the_import(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ops.py"
    path.write_text(text)
    bytecode.read_ahead(str(path))
    bytecode.read_ahead(str(tmp_path / "gone.py"))
    assert bytecode._compiled == {}


def test_an_import_hook_of_the_users_stays(path: str) -> None:
    compiles = SourceFileLoader.source_to_code

    def hook(self: SourceFileLoader, data: Any, path: Any, **options: Any) -> Any:
        return compiles(self, bytes(data).replace(b"1", b"4"), path, **options)

    try:
        with bytecode.compiled_ahead():
            SourceFileLoader.source_to_code = hook  # type: ignore[method-assign]
        assert imported(path).ANSWER == 4
        with bytecode.compiled_ahead():
            assert imported(path).ANSWER == 4
    finally:
        del SourceFileLoader.source_to_code


def test_a_link_is_imported_without_compiling(path: str, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "qwertyui.py"
    link.parent.mkdir()
    link.symlink_to(path)
    assert imported(str(link)).ANSWER == 1
    bytecode.put_beside(path, str(link))
    module = imported(str(link))
    assert module.ANSWER == 2
    assert module.answer.__code__.co_filename == str(link)  # and not the file that it leads to


def test_a_link_to_a_file_that_changed_is_compiled(path: str, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "qwertyui.py"
    link.parent.mkdir()
    link.symlink_to(path)
    bytecode.put_beside(path, str(link))
    status = os.stat(path)
    Path(path).write_text(Path(path).read_text().replace("1", "3"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert imported(str(link)).ANSWER == 3


@pytest.fixture
def distrusting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(SourceFileLoader, "get_data", SourceFileLoader.get_data)
    bytecode.distrust_bytecode()


def saved_in_the_same_second(path: Path, text: str, ago: float = 0.0) -> None:
    """Save ``text`` as Python sees it when two saves are within one second."""
    path.write_text(text)
    second = float(int(time.time() - ago))
    os.utime(path, (second, second))


def test_python_itself_runs_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "ops.py"
    saved_in_the_same_second(path, "ANSWER = 1\n")
    assert imported(str(path)).ANSWER == 1
    saved_in_the_same_second(path, "ANSWER = 2\n")
    assert imported(str(path)).ANSWER == 1


@pytest.mark.usefixtures("distrusting")
def test_a_file_saved_twice_within_a_second_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    for answer in (1, 2, 3):
        saved_in_the_same_second(path, f"ANSWER = {answer}\n")
        found = imported(str(path)).ANSWER
        assert found == answer


def test_bytecode_of_another_process_is_not_believed(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "ops.py"
    saved_in_the_same_second(path, "ANSWER = 1\n")
    assert imported(str(path)).ANSWER == 1  # which keeps bytecode by its time
    saved_in_the_same_second(path, "ANSWER = 2\n")
    request.getfixturevalue("distrusting")
    assert imported(str(path)).ANSWER == 2
    monkeypatch.undo()  # and what is kept now is right everywhere
    assert imported(str(path)).ANSWER == 2


@pytest.mark.usefixtures("distrusting")
def test_bytecode_of_a_settled_file_is_used(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    saved_in_the_same_second(path, "ANSWER = 1\n", ago=60)
    assert imported(str(path)).ANSWER == 1
    cache = Path(importlib.util.cache_from_source(str(path)))
    code = compile("ANSWER = 5\n", str(path), "exec", dont_inherit=True)
    cache.write_bytes(cache.read_bytes()[:16] + marshal.dumps(code))
    assert imported(str(path)).ANSWER == 5


def test_nothing_is_put_beside_what_is_unknown_or_far(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    bytecode.put_beside(str(tmp_path / "other.py"), str(folder / "qwertyui.py"))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    bytecode.put_beside(path, str(folder / "qwertyui.py"))
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "cache").exists()
