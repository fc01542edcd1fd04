"""Files that are no files, and reports that can't be written."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from gradlint.cli import console
from tests.conftest import Command

if sys.platform == "win32":
    pytest.skip("special files are made as on Unix", allow_module_level=True)

_OPERATOR = """
import torch

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def sample_inputs():
        return (torch.rand(3, dtype=torch.float64, requires_grad=True),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "op.py").write_text(_OPERATOR)
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with open(tmp_path / "huge.py", "wb") as file:
        file.truncate(2**33)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("check", "pipe.py"), "error: `pipe.py` is a named pipe, not a regular file\n"),
        (("check", "pipe.py:Op"), "error: `pipe.py` is a named pipe, not a regular file\n"),
        (("check", "zero.py"), "error: `zero.py` is a device, not a regular file\n"),
        (("check", "huge.py:Op"), "error: `huge.py` is larger than 62,500 KiB, the most that is"),
        (("check", "zero.yaml"), "error: zero.yaml: is a device, not a regular file\n"),
        (
            ("check", "op.py", "--inputs", "pipe.py:f"),
            "error: --inputs 'pipe.py:f': `pipe.py` is a named pipe, not a re",
        ),
        (("check", "op.py", "--import", "zero.py"), "error: `zero.py` is a device, not a regular"),
        (("init", "zero.py:Op"), "error: `zero.py` is a device, not a regular file\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_special_files_are_refused(
    words: tuple[str, ...], expected: str, folder: Path, gradlint: Command
) -> None:
    done = gradlint(folder, *words)
    assert done.stderr.startswith(expected)
    assert done.returncode == 2


def test_special_files_are_no_specs(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "validate", "pipe.yaml", "zero.yaml", "huge.py")
    assert done.stdout == (
        "pipe.yaml: is a named pipe, not a regular file\n"
        "zero.yaml: is a device, not a regular file\n"
        "huge.py: is larger than 256 KiB, the most that is read\n"
        "3 of 3 specs wrong, 3 mistakes.\n"
    )
    assert gradlint(folder, "validate", ".").returncode == 5


def test_special_files_in_a_folder_stop_nothing(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", ".", "--select", "GL401", "--output-format", "json")
    assert [target["target"] for target in json.loads(done.stdout)["targets"]] == ["op.py:Twice"]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("--report", "json=no/r.json"),
            "error: --report: no/r.json: there is no folder {folder}/no\n  create it first\n",
        ),
        (("-o", "."), "error: -o: .: is a folder\n  name a file in it\n"),
        (
            ("-o", "r.json", "--report", "json=./r.json"),
            "error: --report: ./r.json: another report is written to it\n  name another file\n",
        ),
        (("--report", "json=op.py/x"), "error: --report: op.py/x: there is no folder {folder}/op"),
    ],
    ids=" ".join,
)
def test_places_of_reports_are_tried_before_the_run(
    words: tuple[str, ...], expected: str, folder: Path, gradlint: Command
) -> None:
    done = gradlint(folder, "check", "no_such_target.py", *words)
    assert done.stderr.startswith(expected.format(folder=folder))
    assert done.returncode == 2
    assert not (folder / "r.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("check", "op.py", "-o", "op.py"),
        ("check", "op.py", "-o", "./helper.PY"),
        ("check", "op.py", "--report", "json=spec.yml"),
        ("check", "op.py", "--report", "concise=latest.json"),
        ("check", "op.py", "-o", "pyproject.toml"),
        ("check", "spec.yml", "-o", "kernel.cu"),
        ("sweep", "op.py:Twice", "-o", "op.py"),
        ("overrides", "op.py:Twice", "-o", "op.py"),
        ("init", "op.py:Twice", "--force", "-o", "op.py"),
        ("schema", "spec", "-o", "pyproject.toml"),
    ],
    ids=" ".join,
)
def test_no_report_takes_the_place_of_source(
    words: tuple[str, ...], folder: Path, gradlint: Command
) -> None:
    for name in ("helper.PY", "spec.yml", "kernel.cu"):
        (folder / name).write_text("someone wrote this")
    (folder / "pyproject.toml").write_text("[tool.gradlint]\n")
    (folder / "latest.json").symlink_to("op.py")
    names = ("helper.PY", "spec.yml", "kernel.cu", "pyproject.toml")
    before = {name: (folder / name).read_bytes() for name in names}
    done = gradlint(folder, *words)
    given = words[-1].partition("=")[2] or words[-1]
    option = "--report" if "=" in words[-1] else "-o"
    assert done.stderr.startswith(f"error: {option}: {given} ")
    assert " holds source, a spec or settings, and would be overwritten\n  name" in done.stderr
    if given == "latest.json":
        assert f"leads to {folder}/op.py, which" in done.stderr
    assert done.returncode == 2
    assert {name: (folder / name).read_bytes() for name in names} == before
    assert (folder / "op.py").read_text() == _OPERATOR


def test_other_files_are_replaced_and_new_ones_made(folder: Path, gradlint: Command) -> None:
    """A report of an earlier run, a name that nothing has yet, and a spec that ``init`` made."""
    (folder / "old.json").write_text("an earlier report")
    (folder / "op.yaml").write_text("an earlier spec")
    words = ("op.py", "--select", "GL101", "-q", "--report", "json=old.json", "-o", "new.yaml")
    assert gradlint(folder, "check", *words).returncode == 0
    assert json.loads((folder / "old.json").read_text())["summary"]["pass"] == 1
    assert gradlint(folder, "init", "op.py:Twice", "--force", "-o", "op.yaml").returncode == 0
    assert "op.py:Twice" in (folder / "op.yaml").read_text()


def test_a_full_disk_keeps_the_old_report_and_the_others_are_written(
    folder: Path, gradlint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = console.write_whole
    (folder / "full.json").write_text("old")

    def write(path: str, parts: Iterable[str | bytes]) -> None:
        def filled() -> Iterable[str | bytes]:
            yield from list(parts)[:1]
            raise OSError(errno.ENOSPC, "No space left on device")

        whole(path, filled() if path == "full.json" else parts)

    monkeypatch.setattr(console, "write_whole", write)
    words = ("--select", "GL401", "-q", "--report", "json=full.json", "--report", "json=next.json")
    done = gradlint(folder, "check", "op.py", *words)
    assert done.stderr == (
        "error: full.json: can't be written: No space left on device\n"
        "  what was there before is as it was; name another file, or make room\n"
    )
    assert done.returncode == 2
    assert (folder / "full.json").read_text() == "old"
    assert json.loads((folder / "next.json").read_text())["summary"]["pass"] == 1
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp") == []


def test_a_name_that_is_not_utf8(folder: Path, gradlint: Command) -> None:
    name = "op\udcff.py"
    (folder / name).write_text(_OPERATOR)
    done = gradlint(folder, "check", name, "--select", "GL401")
    assert done.returncode == 2
    assert done.stderr == ("error: `op\\udcff.py` is not UTF-8\n  rename the file, or its folder\n")
