"""The GPU suite without a GPU: it says why it did not run; its table, and how it reads results."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.gpu.support import parts
from tests.gpu.support.table import Row, rendered

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
    def found(self: object, name: str, command: object) -> tuple[object, str, float]:
        return answers[name], "", 3.0

    answers = {
        "specs": {
            "targets": [
                {"target": "specs/relu.yaml", "verdict": "pass"},
                {"target": "specs/gelu.yaml", "verdict": "inconclusive"},
            ]
        },
        "agreement": {"relu float32": 0.25, "gelu float16": 3.0, "exp float64": float("nan")},
        "bench": {
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
    assert [(row.item, row.result) for row in parts.benchmark(runner)] == [
        ("float32", "copy 4000 GB/s"),
        ("relu forward", "2.000 ms, 90% of the floor, 1.50 × eager PyTorch"),
    ]
