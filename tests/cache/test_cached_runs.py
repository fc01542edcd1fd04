"""``check --cache``: a verdict is read where nothing changed, and found out anew where anything
did that can be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.running import _process
from gradlint.running import server as _server

Command = Callable[..., Any]
ROOT = str(Path(__file__).parents[2])

RIGHT = """
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * FACTOR
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * FACTOR
    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    written(tmp_path, "ops.py", "FACTOR = 2.0\n" + RIGHT)
    return tmp_path


def written(folder: Path, name: str, text: str) -> None:
    """As a file that was there long before the run."""
    path = folder / name
    path.write_text(text)
    hour = path.stat().st_mtime - 3600
    os.utime(path, (hour, hour))


@pytest.fixture
def check(folder: Path, gradlint: Command) -> Callable[..., dict[str, Any]]:
    def run(*words: str, **variables: str) -> dict[str, Any]:
        words = words or ("ops.py",)
        done = gradlint(
            folder, "check", *words, "--select", "GL401", "--cache", "kept",
            "--output-format", "json", **variables,
        )  # fmt: skip
        assert done.returncode in (0, 1, 5), done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    return run


Check = Callable[..., dict[str, Any]]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        left = ("duration_s", "cached", "cache")
        return {key: without_times(item) for key, item in value.items() if key not in left}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a worker, or the server that they come from, was started")

    monkeypatch.setattr(_process.Worker, "__init__", refuse)
    monkeypatch.setattr(_server, "start", refuse)


def test_the_second_run_starts_no_worker(
    folder: Path, check: Check, gradlint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = RIGHT.replace("grad_output * FACTOR", "grad_output * 3").replace("Op(", "Wrong(")
    written(folder, "wrong.py", "FACTOR = 2.0\n" + wrong)
    first = check("ops.py", "wrong.py")
    assert first["cache"] == {"path": "kept", "read": 0, "kept": 2, "not_kept": {}, "notes": []}
    assert first["seed"] == 0
    no_workers(monkeypatch)
    second = check("ops.py", "wrong.py")
    assert second["cache"] == {"path": "kept", "read": 2, "kept": 0, "not_kept": {}, "notes": []}
    assert [target["cached"] for target in second["targets"]] == [True, True]
    assert [target["verdict"] for target in second["targets"]] == ["pass", "fail"]
    assert without_times(second) == without_times(first)
    done = gradlint(folder, "check", "ops.py", "--select", "GL401", "--cache", "kept")
    assert "1 of 1 operator: the verdict was read from the cache (kept)" in done.stdout


def test_one_of_two_changes(folder: Path, check: Check) -> None:
    written(folder, "other.py", "FACTOR = 2.0\n" + RIGHT.replace("Op(", "Other("))
    check("ops.py", "other.py")
    written(folder, "other.py", "FACTOR = 5.0\n" + RIGHT.replace("Op(", "Other("))
    report = check("ops.py", "other.py")
    assert [target["cached"] for target in report["targets"]] == [True, False]
    assert [target["target"] for target in report["targets"]] == ["ops.py:Op", "other.py:Other"]


def test_what_is_read_from_the_cache_needs_no_torch(folder: Path) -> None:
    program = (
        "import sys; from gradlint.cli.entry import main; "
        "main(['check', 'ops.py', '--select', 'GL401', '--cache', 'kept']); "
        "print([name for name in ('torch', 'numpy') if name in sys.modules])"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": ROOT},
            check=False,
        )
        assert done.stdout.splitlines()[-1] == "[]"
    assert "the verdict was read from the cache" in " ".join(done.stdout.split())


#: Faults that show only by what the operator reads: text before :data:`RIGHT`, and the file.
READERS = {
    "data": ("import json\nFACTOR = json.load(open('factor.json'))\n", "factor.json", "2.0"),
    "a path": (
        "from pathlib import Path\nFACTOR = float(Path('factor.txt').read_text())\n",
        "factor.txt",
        "2.0",
    ),
    "numpy": ("import numpy\nFACTOR = float(numpy.loadtxt('factor.txt'))\n", "factor.txt", "2.0"),
    "a name put together": (
        "import importlib\nFACTOR = importlib.import_module('fac' + 'tor').FACTOR\n",
        "factor.py",
        "FACTOR = 2.0\n",
    ),
    "exec": ("exec(open('factor.py').read())\n", "factor.py", "FACTOR = 2.0\n"),
    "a file that may be there": (
        "try:\n    FACTOR = float(open('factor.txt').read())\n"
        "except FileNotFoundError:\n    FACTOR = 2.0\n",
        "factor.txt",
        "",
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_what_only_the_worker_sees(
    folder: Path, check: Check, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, file, content = READERS[name]
    written(folder, "ops.py", text + RIGHT)
    if content:
        written(folder, file, content)
    assert check()["cache"]["kept"] == 1
    assert check()["cache"]["read"] == 1
    written(folder, file, "FACTOR = 3.0\n" if file.endswith(".py") else "3.0")
    report = check()
    assert (report["cache"]["read"], report["cache"]["kept"]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 0.1)\n"
            "except OSError:\n    pass\n",
            "uses the network",
        ),
        ("import subprocess\nsubprocess.run(['true'])\n", "runs a program"),
        ("import os\nos.listdir('.')\n", "lists a folder"),
        (
            "import os\npid = os.fork()\nif pid == 0:\n    os._exit(0)\nos.waitpid(pid, 0)\n",
            "starts a process",
        ),
        (
            "open('log.txt', 'a').write('x')\n",
            "reads a file that it writes",
        ),
    ],
    ids=["network", "program", "listing", "fork", "log"],
)
def test_where_more_may_come_in_nothing_is_kept(
    folder: Path, check: Check, text: str, why: str
) -> None:
    written(folder, "log.txt", "x")
    written(folder, "ops.py", f"FACTOR = 2.0\n{text}{RIGHT}")
    report = check()
    assert report["cache"]["kept"] == 0
    assert report["cache"]["not_kept"] == {"ops.py:Op": why}
    assert check()["cache"]["read"] == 0


def test_a_file_that_is_written_and_read_again_is_no_matter(folder: Path, check: Check) -> None:
    text = "open('made.txt', 'w').write('2')\nFACTOR = float(open('made.txt').read())\n"
    written(folder, "ops.py", text + RIGHT)
    report = check()
    assert report["cache"]["not_kept"] in ({}, {"ops.py:Op": "reads a file that it writes"})


@pytest.mark.parametrize(
    "body", ["import os; os._exit(3)", "raise RuntimeError", "while True: pass"]
)
def test_what_ends_early_is_not_kept(folder: Path, check: Check, body: str) -> None:
    text = RIGHT.replace("return x * FACTOR", body)
    written(folder, "ops.py", "FACTOR = 2.0\n" + text)
    report = check("ops.py", "--timeout", "3")
    assert report["cache"]["kept"] == 0
    assert list(report["cache"]["not_kept"]) == ["ops.py:Op"]


def test_damaged_entries_are_dropped_and_told(
    folder: Path, check: Check, gradlint: Command
) -> None:
    check()
    [entry] = [path for path in (folder / "kept" / "verdicts").rglob("*") if path.is_file()]
    whole = entry.read_bytes()
    for data in (b"", whole[:-1], whole[:40] + b"\0" + whole[41:]):
        entry.write_bytes(data)
        report = check()
        assert (report["cache"]["read"], report["cache"]["kept"]) == (0, 1)
        assert "damaged entry" in report["cache"]["notes"][0]
        assert report["targets"][0]["verdict"] == "pass"
        assert check()["cache"]["read"] == 1


def test_an_entry_under_another_name_is_not_believed(folder: Path, check: Check) -> None:
    """Whoever copies the entry of a right operator over that of a wrong one gets no pass."""
    wrong = RIGHT.replace("grad_output * FACTOR", "grad_output * 3")
    check()
    [right] = [path for path in (folder / "kept" / "verdicts").rglob("*") if path.is_file()]
    written(folder, "ops.py", "FACTOR = 2.0\n" + wrong)
    check()
    entries = [path for path in (folder / "kept" / "verdicts").rglob("*") if path.is_file()]
    [other] = [path for path in entries if path != right]
    other.write_bytes(right.read_bytes())
    report = check()
    assert report["targets"][0]["verdict"] == "fail"
    assert "another operator" in report["cache"]["notes"][0]


def test_a_full_disk_loses_nothing_else(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gradlint.cache.store.write_whole", full)
    report = check()
    assert report["targets"][0]["verdict"] == "pass"
    assert report["cache"]["kept"] == 0
    assert report["cache"]["notes"] == [
        "The cache (kept) can't be written: No space left on device. The run went on without it."
    ]


def test_it_is_asked_for(folder: Path, gradlint: Command) -> None:
    """Without --cache nothing is kept; --no-cache overrides the settings."""
    select = ("--select", "GL401", "--output-format", "json")
    report = json.loads(gradlint(folder, "check", "ops.py", *select).stdout)
    assert report["cache"] is None
    assert not (folder / "kept").exists()
    (folder / "pyproject.toml").write_text('[tool.gradlint]\ncache = "kept"\n')
    report = json.loads(gradlint(folder, "check", "ops.py", *select, "--no-cache").stdout)
    assert report["cache"] is None
    report = json.loads(gradlint(folder, "check", "ops.py", *select).stdout)
    assert report["cache"]["kept"] == 1


def test_a_file_that_changes_during_the_run(folder: Path, check: Check) -> None:
    text = "open('ops.py', 'a').write('# more')\nFACTOR = 2.0\n"
    written(folder, "ops.py", text + RIGHT)
    report = check()
    assert report["cache"]["kept"] == 0
