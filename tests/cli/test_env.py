from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

import gradlint.environment as facts_module
from gradlint.cli.env import env
from gradlint.environment import (
    can_run,
    compiler_facts,
    environment,
    extras,
    torch_facts,
    triton_facts,
)
from gradlint.report.environment_page import add_environment
from gradlint.report.text import Page


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def torch_package(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "torch.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))


FACTS: dict[str, Any] = {
    "gradlint": {"version": "0.1.0", "path": "p"},
    "python": {"version": "3.11.7", "executable": "/v/python", "platform": "Linux", "cores": 2},
    "torch": {
        "version": "2.13.0",
        "path": "/v/torch/__init__.py",
        "cuda_build": "12.8",
        "threads": 2,
        "cuda_available": True,
        "warnings": [],
        "gpus": [
            {"name": "H200", "capability": "9.0", "memory_bytes": 2**37, "error": None},
            {"name": "[old]", "capability": "3.5", "memory_bytes": 2**33, "error": "no kernel"},
        ],
    },
    "compilers": {
        "g++": {"path": "/usr/bin/g++", "version": "12.2.0"},
        "nvcc": {"path": None, "version": None},
        "ninja": {"path": "/usr/bin/ninja", "version": None, "error": "exits with status 1"},
    },
    "extras": {
        "plot": {
            "versions": {"plotext": "5.3.2"},
            "missing": ["matplotlib>=3.8"],
            "install": "/v/python -m pip install 'matplotlib>=3.8'",
        }
    },
    "can_run": {"checks on cpu": "yes", "C++ extensions": "no: ninja not found"},
}


def test_page(page: SnapshotAssertion) -> None:
    made = Page(80)
    add_environment(made, FACTS)
    assert made.text() == page


def test_json_is_what_was_gathered() -> None:
    app = typer.Typer()
    app.command()(env)
    result = CliRunner().invoke(app, ["--output-format", "json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    assert list(found) == [
        "gradlint",
        "python",
        "torch",
        "compilers",
        "triton",
        "extras",
        "can_run",
    ]
    assert found["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["torch"]["version"][0].isdigit()
    assert found["can_run"]["checks on cpu"] == "yes"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "raise ImportError('libcudart.so.12: [no] such file\\nmore')",
            "ImportError: libcudart.so.12: [no] such file",
        ),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os.abort()", "import torch ended the process with signal 6"),
        ("import os; os._exit(0)", "import torch ended the process with status 0"),
        ("print('noise'); x = 1", "AttributeError: module 'torch' has no attribute '__version__'"),
    ],
)
def test_a_broken_torch_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, error: str
) -> None:
    torch_package(tmp_path, text, monkeypatch)
    monkeypatch.chdir(tmp_path)
    facts = environment()
    assert facts["torch"]["error"] == error
    assert facts["can_run"]["checks on cpu"] == "no: torch can't be imported"
    page = Page(200)
    add_environment(page, facts)
    assert f"  torch            can't be imported: {error}\n" in page.text()


def test_torch_that_hangs_or_python_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torch_facts(str(tmp_path / "nothing"))["error"].startswith("Python can't be started")
    torch_package(tmp_path, "while True: pass", monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(facts_module, "TORCH_TIMEOUT", 0.5)
    assert torch_facts()["error"] == "import torch did not end within 0 s"


@pytest.mark.skipif(os.name != "posix", reason="shell scripts")
@pytest.mark.parametrize(
    ("name", "printed", "version"),
    [
        ("g++", "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022", "12.2.0"),
        ("g++", "g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)", "8.5.0"),
        ("g++", "Apple clang version 15.0.0 (clang-1500.3.9.4)", "15.0.0"),
        ("nvcc", "nvcc: NVIDIA\nCuda compilation tools, release 12.4, V12.4.131", "12.4.131"),
        ("ninja", "1.11.1.git.kitware.jobserver-1", "1.11.1"),
        ("ninja", "strange", "strange"),
    ],
)
def test_versions_of_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, printed: str, version: str
) -> None:
    path = script(tmp_path, name, f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CXX", raising=False)
    assert compiler_facts(name) == {"path": str(path), "version": version}


@pytest.mark.skipif(os.name != "posix", reason="shell scripts")
def test_compilers_that_fail_or_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "mycc", "#!/bin/sh\nexit 7\n")
    monkeypatch.setenv("CXX", str(path))
    assert compiler_facts("g++") == {
        "path": str(path),
        "version": None,
        "error": "exits with status 7",
    }
    assert compiler_facts("no-such-tool") == {"path": None, "version": None}


def test_extras_come_from_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = [
        "torch>=2.6",
        'pytest>=1; extra == "test"',
        'rich>=13; extra == "plot"',
        'no-such-package[a]>=2; extra == "plot"',
        "typer; python_version >= '3.8' and extra == 'watch'",
    ]
    monkeypatch.setattr(facts_module.metadata, "requires", lambda _: requires)
    monkeypatch.setattr(sys, "executable", "/a b/python")
    found = extras()
    assert list(found) == ["plot", "watch"]
    assert found["plot"]["missing"] == ["no-such-package[a]>=2"]
    assert found["plot"]["install"] == "'/a b/python' -m pip install 'no-such-package[a]>=2'"
    assert found["watch"]["missing"] == []
    assert found["watch"]["install"] == ""


@pytest.mark.parametrize(
    ("changes", "purpose", "answer"),
    [
        ({}, "checks on cuda", "yes"),
        ({"cuda_build": None}, "checks on cuda", "no: this torch is built without CUDA"),
        ({"cuda_available": False}, "checks on cuda", "no: no GPU that torch can use"),
        (
            {"cuda_available": False, "warnings": ["driver too old"]},
            "checks on cuda",
            "no: driver too old",
        ),
        ({"gpus": [{"error": "no kernel"}]}, "checks on cuda", "no: no kernel"),
        ({}, "C++ extensions", "no: ninja not found"),
        ({}, "CUDA extensions", "no: nvcc and ninja not found"),
        ({"error": "x"}, "CUDA extensions", "no: torch can't be imported"),
    ],
)
def test_what_can_run(changes: dict[str, Any], purpose: str, answer: str) -> None:
    assert can_run({**FACTS, "torch": {**FACTS["torch"], **changes}})[purpose] == answer


def test_without_a_gpu_cuda_extensions_only_compile() -> None:
    tools = {name: {"version": "1"} for name in ("g++", "nvcc", "ninja")}
    torch = {"cuda_build": None, "gpus": []}
    assert can_run({"torch": torch, "compilers": tools})["CUDA extensions"] == (
        "compile only: this torch is built without CUDA"
    )


def test_triton_that_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_version", lambda name: None)
    assert triton_facts() == {"version": None, "error": "triton is not installed"}
    facts = {**FACTS, "torch": {**FACTS["torch"]}, "triton": triton_facts()}
    facts["compilers"] = {**FACTS["compilers"]}
    assert can_run(facts)["Triton on cpu"] == "no: triton is not installed"


def test_triton_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_version", lambda name: "3.9.0")
    python = script(tmp_path, "python", "#!/bin/sh\necho 'ImportError: no kernels' >&2\nexit 1\n")
    found = triton_facts(str(python))
    assert found["version"] == "3.9.0"
    assert found["error"] == "its interpreter ends with status 1: ImportError: no kernels"


def test_triton_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_version", lambda name: "3.9.0")
    facts = {**FACTS, "triton": triton_facts(str(script(tmp_path, "python", "#!/bin/sh\n")))}
    assert can_run(facts)["Triton on cpu"] == "yes: gradlint check --triton-interpret"
    page = Page(80)
    add_environment(page, {**facts, "can_run": can_run(facts)})
    assert "  triton           3.9.0\n" in page.text()
