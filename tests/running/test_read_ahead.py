"""A file of many operators is read once, by the server."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradlint.model.op import OpRef
from gradlint.model.report import Location
from gradlint.running import run
from gradlint.running import server as _server
from gradlint.running.call import call_in_worker
from gradlint.running.job import CallWork
from gradlint.targets import bytecode, source_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no fork server on Windows")


def known() -> list[str]:
    """The files that this process has read and compiled."""
    return sorted(source_file._cache.keys() & bytecode._compiled.keys())


def names_known(path: str) -> list[str]:
    """The names of functions that the compiler knows of the file at ``path``, "" outside."""
    return sorted(
        set(importlib.import_module("torch._dynamo.funcname_cache").cache.get(path, {}).values())
    )


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of which a server, which the others do not share, was told to read two files."""
    folder = tmp_path_factory.mktemp("read")
    ops, marking = folder / "ops.py", folder / "marking.py"
    ops.write_text("class Op:\n    def forward(x):\n        return x\n")
    marking.write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    call_in_worker(CallWork(os.getpid))
    first = _server._pid()
    assert str(ops) not in call_in_worker(CallWork(known))
    _server.start("tracing", sources=[str(ops), str(marking)])
    call_in_worker(CallWork(os.getpid))
    assert _server._pid() != first
    yield folder
    _server.start("rules")


def test_workers_find_what_the_server_read(read: Path) -> None:
    paths = [str(read / "marking.py"), str(read / "ops.py")]
    assert set(paths) <= set(call_in_worker(CallWork(known)))
    before = _server._pid()
    _server.start(sources=paths[1:])  # it has read that
    _server.start()
    call_in_worker(CallWork(os.getpid))
    assert _server._pid() == before


def test_the_compiler_has_read_the_file(read: Path) -> None:
    found = call_in_worker(CallWork(names_known, (str(read / "ops.py"),)))
    assert found == ["", "Op", "Op.forward"]


def test_no_code_of_the_file_runs_in_the_server(read: Path) -> None:
    assert not (read / "ran").exists()


def test_when_it_pays_to_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_WORTH_BYTES", 300)
    Path("many.py").write_text("#" * 100)
    Path("few.py").write_text("#" * 100)

    def ref(file: str, name: str) -> OpRef:
        return OpRef(f"{file}:{name}", "file", file, name, location=Location(file, 1))

    many = [ref("many.py", name) for name in "abc"]
    few = [ref("few.py", name) for name in "ab"]
    other = [OpRef("torch.ops.a.b", "library", "a::b", "a::b"), ref("gone.py", "a")]
    assert run._worth_reading([*many, *few, *other]) == [str(tmp_path / "many.py")]
    assert run._worth_reading([*few, *other]) == []
