"""A file of many operators is read once, by the server."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
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


def test_workers_find_what_the_server_read(
    tmp_path: Path, ending_the_server: Callable[[], None]
) -> None:
    path = str(tmp_path / "ops.py")
    Path(path).write_text("import torch\n")
    call_in_worker(CallWork(os.getpid))
    first = _server._pid()
    assert path not in call_in_worker(CallWork(known))
    _server.start(sources=[path])
    assert path in call_in_worker(CallWork(known))
    second = _server._pid()
    assert second != first
    _server.start(sources=[path])  # it has read that
    _server.start()
    call_in_worker(CallWork(os.getpid))
    assert _server._pid() == second


def names_known(path: str) -> list[str]:
    """The names of functions that the compiler knows of the file at ``path``, "" outside."""
    return sorted(
        set(importlib.import_module("torch._dynamo.funcname_cache").cache.get(path, {}).values())
    )


def test_the_compiler_has_read_the_file(
    tmp_path: Path, ending_the_server: Callable[[], None]
) -> None:
    path = tmp_path / "ops.py"
    path.write_text("class Op:\n    def forward(x):\n        return x\n")
    _server.start("tracing", sources=[str(path)])
    assert call_in_worker(CallWork(names_known, (str(path),))) == ["", "Op", "Op.forward"]
    _server.start("rules")


def test_no_code_of_the_file_runs_in_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    path = tmp_path / "ops.py"
    path.write_text(f"open({str(mark)!r}, 'w')\n")
    _server.start(sources=[str(path)])
    call_in_worker(CallWork(os.getpid))
    assert not mark.exists()


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
