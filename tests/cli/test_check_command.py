"""``gradlint check`` from the outside: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

ROOT = str(Path(__file__).parents[2])

OPS = """
import torch

class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output
    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True),)

class Wrong(Right):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the rules on transforms, which compile and take most of the time, are left out."""
    (tmp_path / "ops.py").write_text(OPS)
    (tmp_path / "empty").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.gradlint]\nignore = ["GL9"]\n')
    return tmp_path


def program(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``python -m gradlint``, where the process itself matters."""
    environment = {**os.environ, "PYTHONPATH": ROOT, "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-m", "gradlint", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_right_and_wrong(folder: Path) -> None:
    (folder / "pyproject.toml").unlink()
    done = program(
        folder, "check", "ops.py", "--seed", "7",
        "--report", "json=all.json", "--report", "concise=all.txt",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert "GL401" in done.stdout
    assert "seed 7" in done.stdout
    assert "--seed 7" in done.stdout
    report = json.loads((folder / "all.json").read_text())
    assert [item["verdict"] for item in report["targets"]] == ["pass", "fail"]
    assert report["seed"] == 7
    assert report["summary"]["targets"] == 2
    lines = (folder / "all.txt").read_text().splitlines()
    assert any(line.startswith("ops.py:") and "GL401" in line for line in lines)


def test_quiet(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", "ops.py:Right", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = gradlint(folder, "check", "ops.py:Wrong", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("ops.py:")


def test_json_to_a_file(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", "ops.py:Right", "--output-format", "json", "-o", "r.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((folder / "r.json").read_text())["summary"]["pass"] == 1


def test_one_wrong_target_among_others(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", "ops.py:Right", "ops.py:Writh")
    assert done.returncode == 2
    assert "ops.py:Right" in done.stdout
    assert "error:" in done.stderr
    assert "Writh" in done.stderr


def test_nothing_to_check(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", "empty")
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stdout.startswith("Nothing was checked.\nSkipped: empty: holds no operator")
    (folder / "plain.py").write_text("x = 1\n")
    done = gradlint(folder, "check", "plain.py", "empty")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "Skipped: empty, plain.py: holds no operator" in done.stdout


def test_a_mistake_is_told_once(folder: Path, gradlint: Command) -> None:
    (folder / "five.py").write_text("def five():\n    return 5\n")
    done = gradlint(folder, "check", "ops.py", "--inputs", "five.py:five")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("it gave an int, 5") == 1
    assert done.stderr.count("error:") == 1
    done = gradlint(
        folder, "check", "ops.py", "--inputs", "five.py:five", "--output-format", "json"
    )
    assert done.returncode == 2
    targets = json.loads(done.stdout)["targets"]
    assert [(item["verdict"], item["findings"]) for item in targets] == [("error", [])] * 2
    assert all("it gave an int, 5" in item["notes"][0] for item in targets)


def test_a_torch_that_does_not_load_is_no_fault_of_the_op(folder: Path) -> None:
    (folder / "torch.py").write_text("raise OSError('libgomp.so.1: cannot open')\n")
    done = program(folder, "check", "ops.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: torch can't be imported: OSError: libgomp.so.1")
    assert done.stderr.count("error:") == 1


def test_an_absent_device(folder: Path, gradlint: Command) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("cuda is here")
    done = gradlint(folder, "check", "ops.py:Right", "--device", "cuda,cpu")
    assert done.returncode == 0, done.stderr
    assert "cuda" in done.stdout
    done = gradlint(folder, "check", "ops.py:Right", "--device", "cuda", "--require-device")
    assert done.returncode == 2
    assert "cuda is not available here" in done.stderr
    done = gradlint(folder, "check", "ops.py:Right", "--device", "cuda")
    assert done.returncode == 5, done.stdout


def test_ascii_and_a_narrow_terminal(folder: Path) -> None:
    done = program(
        folder, "check", "ops.py", PYTHONIOENCODING="ascii", COLUMNS="40", PYTHONUTF8="0"
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.isascii()


def test_color(folder: Path, gradlint: Command) -> None:
    assert "\x1b" not in gradlint(folder, "check", "ops.py:Wrong").stdout
    assert "\x1b[" in gradlint(folder, "check", "ops.py:Wrong", FORCE_COLOR="1").stdout
    assert "\x1b[" in gradlint(folder, "check", "ops.py:Wrong", "--color", "always").stdout
    never = gradlint(folder, "check", "ops.py:Wrong", "--color", "never", FORCE_COLOR="1")
    assert "\x1b" not in never.stdout


def test_a_reader_that_goes_away(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "gradlint", "check", "ops.py", "-v", "--select", "GL4"],
        cwd=folder,
        env=environment,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_and_a_closed_output(folder: Path) -> None:
    words = f"{sys.executable} -m gradlint check ops.py:Right --select GL4"
    environment = {**os.environ, "PYTHONPATH": ROOT}
    for tail, code, told in (
        ("> /dev/full", 2, "error: standard output: can't be written: No space left on device\n"),
        (">&-", 0, ""),
    ):
        done = subprocess.run(
            ["sh", "-c", f"{words} {tail}"],
            cwd=folder,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (done.returncode, done.stderr) == (code, told)


def test_a_budget_of_calls_lowers_the_pairs_and_says_so(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "check", "ops.py:Right", "--seed", "7", "--max-calls", "60")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert re.search(r"\(GL[^)]*GL50\d \w+[^)]*\): left out: beyond --max-calls 60", text)
    done = gradlint(folder, "check", "ops.py:Right", "--seed", "7", GRADLINT_MAX_CALLS="30")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "resolving power" in text
    assert "with 2 of 4 pairs (GL401 wrong_gradient)" in text
    done = gradlint(folder, "check", "ops.py:Wrong", "--seed", "7", "--max-calls", "40")
    assert done.returncode == 1
    assert "scaled" in done.stdout


def test_inconclusive_is_shown_everywhere_and_fails_only_if_told_to(
    folder: Path, gradlint: Command
) -> None:
    words = ("check", "ops.py:Right", "--seed", "7", "--max-calls", "1")
    done = gradlint(folder, *words, "--report", "json=all.json", "--report", "concise=all.txt")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert text.startswith("inconclusive ops.py:Right")
    assert "not one pair could be measured: --max-calls 1 is too small" in text
    assert "next: raise --max-calls, or leave it out" in text
    assert "The operator is inconclusive." in text
    assert "--fail-on inconclusive fails them." in text
    (line,) = (folder / "all.txt").read_text().splitlines()
    assert "GL401 wrong_gradient inconclusive (not counted as passed)" in line
    assert line.endswith("; next: raise --max-calls, or leave it out")
    report = json.loads((folder / "all.json").read_text())
    assert report["summary"]["inconclusive"] == 1
    assert report["targets"][0]["verdict"] == "inconclusive"
    (entry,) = [c for c in report["targets"][0]["checks"] if c["verdict"] == "inconclusive"]
    assert (entry["pairs"], entry["pairs_usual"], entry["resolution"]) == (0, 4, None)
    strict = gradlint(folder, *words, "--fail-on", "inconclusive")
    assert strict.returncode == 1
    assert "1 inconclusive operator fails the run" in strict.stdout
    quiet = gradlint(folder, *words, "--fail-on", "inconclusive", "-q")
    assert quiet.returncode == 1
    assert "GL401" in quiet.stdout


def test_verbose_shows_the_predicted_cost_and_the_power_by_input(
    folder: Path, gradlint: Command
) -> None:
    for width in ("40", "80", "120"):
        done = gradlint(
            folder, "check", "ops.py:Right", "-v", "--seed", "7",
            COLUMNS=width, encoding="ascii", NO_COLOR="1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "predicted before the checks ran" in done.stdout
        assert "others" in done.stdout
        assert "resolving power" in done.stdout
        assert done.stdout.isascii()
        long = [line for line in done.stdout.splitlines() if len(line) > int(width)]
        assert long == []


@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_budget_is_a_whole_number_from_one_on(
    folder: Path, gradlint: Command, value: str
) -> None:
    done = gradlint(folder, "check", "ops.py:Right", f"--max-calls={value}")
    assert done.returncode == 2
    assert "--max-calls" in done.stderr
    assert "Traceback" not in done.stderr


BRANCHES = """
import torch

def halved(g):
    if g.numel() == 61:
        return g / 2
    return g

class Some(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.dim() > 9:
            raise ValueError("too many")
        return x * 2 if x.numel() != 61 else x.clone()
    @staticmethod
    def backward(ctx, grad_output):
        return halved(grad_output * 2)
    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True),)

class Both(Some):
    @staticmethod
    def sample_inputs():
        x = Some.sample_inputs()[0]
        return [(x,), (torch.linspace(0.5, 2.0, 61, dtype=x.dtype, requires_grad=True),)]
"""


def test_code_that_never_ran_is_shown_and_fails_only_if_told_to(
    folder: Path, gradlint: Command
) -> None:
    (folder / "ops.py").write_text(BRANCHES)
    words = ("check", "ops.py:Some", "--seed", "7", "--select", "GL1,GL401")
    done = gradlint(folder, *words, "--report", "json=all.json", "--report", "concise=all.txt")
    assert done.returncode == 0, done.stderr
    assert "not tried  line 6, line 14: `x.numel() != 61` false\n" in done.stdout
    assert "1 passed with code that never ran." in " ".join(done.stdout.split())
    assert (folder / "all.txt").read_text() == ""
    report = json.loads((folder / "all.json").read_text())
    assert report["summary"]["uncovered"] == 1
    (target,) = report["targets"]
    assert target["not_tried"] == ["line 6", "line 14: `x.numel() != 61` false"]
    assert target["coverage"]["backward"] == {
        "lines": 3, "of": 4, "missed": [6], "missed_ways": [],
    }  # fmt: skip
    assert target["coverage"]["forward"] == {
        "lines": 2, "of": 2, "missed": [], "missed_ways": ["line 14: `x.numel() != 61` false"],
    }  # fmt: skip
    strict = gradlint(folder, *words, "--fail-on", "uncovered")
    assert strict.returncode == 1
    assert "1 operator with code that never ran fails the run" in " ".join(strict.stdout.split())


def test_what_was_not_tried_fits_a_narrow_pipe(folder: Path, gradlint: Command) -> None:
    (folder / "ops.py").write_text(BRANCHES)
    words = ("check", "ops.py:Some", "--seed", "7", "--select", "GL1,GL401")
    done = gradlint(folder, *words, COLUMNS="40", encoding="ascii", NO_COLOR="1")
    assert "  not tried\n    line 6, line 14: `x.numel() != 61`\n    false\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 40


def test_code_that_ran_on_one_of_the_samples_is_covered(folder: Path, gradlint: Command) -> None:
    (folder / "ops.py").write_text(BRANCHES)
    words = ("check", "ops.py:Both", "--seed", "7", "--select", "GL1")
    done = gradlint(folder, *words, "--fail-on", "uncovered", "--report", "json=all.json")
    (target,) = json.loads((folder / "all.json").read_text())["targets"]
    assert target["coverage"]["backward"]["missed"] == []
    assert "not tried" not in done.stdout
    assert target["not_tried"] == []


def test_where_no_check_ran_nothing_is_said_of_what_was_not_tried(
    folder: Path, gradlint: Command
) -> None:
    (folder / "ops.py").write_text(BRANCHES)
    done = gradlint(folder, "check", "ops.py:Some", "--seed", "7", "--select", "GL806")
    assert "The operator is inconclusive." in done.stdout
    assert "not tried" not in done.stdout


def test_statistics(folder: Path, gradlint: Command) -> None:
    words = ("check", "ops.py", "--select", "GL401", "--seed", "7", "--statistics")
    done = gradlint(folder, *words)
    assert done.stdout.endswith("\n1  GL401  wrong_gradient\n")
    done = gradlint(folder, *words, "--output-format", "json")
    assert json.loads(done.stdout)["summary"]["findings"] == 1
    assert done.stderr == "1  GL401  wrong_gradient\n"
    assert gradlint(folder, *words, "--ignore", "GL401").stdout.endswith("No findings.\n")
