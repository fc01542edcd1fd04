"""The GPU suite without a GPU: it says why it did not run; its table, and how it reads results."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.support import parts
from tests.gpu.support.table import Row, rendered
from tests.kernels.support import triton_examples

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_nothing_is_checked_and_the_reason_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert done.stdout.startswith("GPU suite skipped, nothing was checked: ")
    assert "CUDA" in done.stdout


def test_the_table_marks_what_is_not_as_it_must_be() -> None:
    rows = [Row("build", "kernels/", "built", True, 61.4), Row("check", "relu", "fail", False)]
    assert rendered(rows, 70.0, "2030-01-01, 1 × GPU").splitlines() == [
        "2030-01-01, 1 × GPU",
        "",
        "| part | item | result | s |",
        "|---|---|---|--:|",
        "| build | kernels/ | built | 61 |",
        "| check | relu | **not as it must be:** fail |  |",
        "",
        "1 of 2 lines are not as they must be, 70 s",
    ]


def commands(folder: Path, code: str, started: float) -> tuple[object, str, float]:
    return parts.Commands(folder, started).json("name", [sys.executable, "-c", code])


def test_json_is_read_and_trouble_is_told(tmp_path: Path) -> None:
    now = time.monotonic()
    code = "import sys; print('{\"a\": 1}'); print('progress {', file=sys.stderr)"
    assert commands(tmp_path, code, now)[:2] == ({"a": 1}, "")
    assert commands(tmp_path, "raise SystemExit('no such thing')", now)[:2] == (
        None,
        "exit 1: no such thing",
    )


def test_a_part_that_outlasts_the_budget_is_ended(tmp_path: Path) -> None:
    started = time.monotonic() - (parts.BUDGET_S - parts.RESERVE_S - 1.0)
    found, why, _ = commands(tmp_path, "import time; time.sleep(1000)", started)
    assert (found, why) == (None, "out of time")
    assert commands(tmp_path, "print('{}')", started - 10.0)[:2] == (None, "out of time")


def test_results_become_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def found(
        self: object, name: str, command: object, limit: float | None = None
    ) -> tuple[object, str, float]:
        return answers.get(name), "" if name in answers else "out of time", 3.0

    answers = {
        "specs": {
            "targets": [
                {"target": "specs/relu.yaml", "verdict": "pass"},
                {"target": "specs/gelu.yaml", "verdict": "inconclusive"},
            ]
        },
        "agreement": {"relu float32": 0.25, "gelu float16": 3.0, "exp float64": float("nan")},
        "bench-float32": {
            "dtype": "float32",
            "copy_bytes_per_s": 4.0e12,
            "rows": [
                {
                    "operator": "relu",
                    "pass": "forward",
                    "seconds": 0.002,
                    "eager_seconds": 0.003,
                    "of_floor": 0.9,
                }
            ],
        },
    }
    monkeypatch.setattr(parts.Commands, "json", found)
    runner = parts.Commands(tmp_path, time.monotonic())
    total, bad = parts.specs(runner)
    assert (total.result, total.ok, total.seconds) == ("1 of 2 pass", False, 3.0)
    assert (bad.item, bad.result, bad.ok) == ("gelu", "inconclusive", False)
    total, *rest = parts.agreement(runner)
    assert (total.result, total.ok) == ("1 of 3 (operator, dtype) agree", False)
    assert [row.item for row in rest] == ["gelu float16", "exp float64"]
    monkeypatch.setattr(parts, "DTYPES", ("float64", "float32"))
    assert [(row.item, row.result, row.ok) for row in parts.benchmark(runner)] == [
        ("float64", "out of time", False),
        ("float32", "copy 4000 GB/s", True),
        ("relu forward float32", "2.000 ms, 90% of the floor, 1.50 × eager PyTorch", True),
    ]


def test_what_is_left_running_is_ended(tmp_path: Path) -> None:
    child = "import time; time.sleep(600)"
    code = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid)"
    runner = parts.Commands(tmp_path, time.monotonic())
    assert runner.run("leaves", [sys.executable, "-c", code])[0] == 0
    left = int((tmp_path / "leaves.out").read_text())
    deadline = time.monotonic() + 30
    while running(left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(left)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_stage_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []

    def good(commands: parts.Commands) -> list[Row]:
        calls.append("good")
        return [Row("one", "item", "fine", True, 1.0)]

    def bad(commands: parts.Commands) -> list[Row]:
        calls.append("bad")
        raise ValueError("no such thing")

    def last(commands: parts.Commands) -> list[Row]:
        calls.append(commands.where.device)
        return [Row("three", "item", "fine")]

    monkeypatch.setitem(parts.STAGES, "A", (good, bad, last))
    first, _ = parts.run_stage("A", tmp_path, rehearse=True)
    assert [(row.result, row.ok) for row in first] == [
        ("fine", True),
        ("ValueError: no such thing", False),
        ("fine", True),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "  one: item: fine",
        "✗ bad: : ValueError: no such thing",
        "  three: item: fine",
    ]
    again, _ = parts.run_stage("A", tmp_path, rehearse=True)
    assert again == first
    assert calls == ["good", "bad", "cpu", "bad"]
    with tarfile.open(parts.archive(tmp_path)) as packed:
        names = {Path(name).name for name in packed.getnames()}
    assert {"A-good.json", "A-bad.json", "A-last.json"} <= names


def test_a_rehearsal_in_small(tmp_path: Path) -> None:
    """No import, path or option fails for the first time on a GPU."""
    code = (
        "import sys; from tests.gpu.support import parts; from tests.gpu import run; "
        "parts.DTYPES = ('float32',); "
        "parts.STAGES = {'A': (parts.probe, parts.build, parts.benchmark), "
        "'B': (parts.tests, parts.index_overflow)}; "
        f"sys.argv = ['run', '--rehearse', '--keep', {str(tmp_path / 'kept')!r}]; "
        "sys.exit(run.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| fork | preload | CUDA untouched |" in done.stdout
    assert "| bench | relu, unaligned backward float32 |" in done.stdout
    assert "| check | large | 2 of 2 pass |" in done.stdout
    assert "rehearsal on the CPU: proves nothing about a GPU" in done.stdout
    assert (tmp_path / "kept.tar.gz").is_file()


def test_triton_kernels_become_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def found(self: object, name: str, command: list[str], limit: float | None = None) -> Any:
        seen.append(" ".join(command))
        paths = [word for word in command if word.endswith(".yaml")]
        wrong = [{"code": "GL404", "severity": "error"}]
        findings = {path: wrong if "missing_mask" in path else [] for path in paths}
        targets = [
            {"target": path, "verdict": "fail" if found else "pass", "findings": found}
            for path, found in findings.items()
        ]
        return {"targets": targets}, "", 3.0

    monkeypatch.setattr(parts.Commands, "json", found)
    monkeypatch.setattr(triton_examples, "MISSING", "")
    rows = {row.item: row for row in parts.triton(parts.Commands(tmp_path, time.monotonic()))}
    assert rows["softmax.yaml"] == Row("triton", "softmax.yaml", "pass")
    assert rows["faulty/missing_mask.yaml"].result == "fail: GL404"
    assert rows["faulty/missing_mask.yaml"].ok
    assert not rows["faulty/wrong_stride.yaml"].ok
    assert all("--device cuda" in one and "--require-device" in one for one in seen)
    seen.clear()
    where = parts.Where("cpu", True)
    parts.triton(parts.Commands(tmp_path, time.monotonic(), where))
    assert all("--device cpu" in one and "--triton-interpret" in one for one in seen)
    monkeypatch.setattr(triton_examples, "MISSING", "triton is not installed")
    (row,) = parts.triton(parts.Commands(tmp_path, time.monotonic()))
    assert (row.result, row.ok) == ("skipped: triton is not installed", True)
