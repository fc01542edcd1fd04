"""Scripts from the command line to their exit codes, with names that would like to be code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import Command

WORDS = ("check", "squares.py:Square", "--select", "GL401", "--seed", "1", "--repro", "out")

WRONG = """
import torch

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mode="{mode}"):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * {factor} * x, None

    @staticmethod
    def sample_inputs():
        return (torch.randn(4, 5, dtype=torch.float64, requires_grad=True), {value})
"""


def write(path: Path, factor: int = 3, value: str = "'plain'") -> None:
    path.write_text(WRONG.format(name="Square", mode="plain", factor=factor, value=value))


def exit_code(script: Path) -> tuple[int, str]:
    """Of the script, in a Python that knows nothing of gradlint."""
    done = subprocess.run(
        [sys.executable, "-I", str(script)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_script_shows_the_defect_until_it_is_mended(gradlint: Command, tmp_path: Path) -> None:
    write(tmp_path / "squares.py")
    run = gradlint(tmp_path, *WORDS)
    assert run.returncode == 1
    script = tmp_path / "out" / "Square_GL401.py"
    assert "python out/Square_GL401.py" in run.stdout
    assert "gradlint" not in script.read_text()
    code, printed = exit_code(script)
    assert (code, printed.splitlines()[0]) == (1, "the gradient of `x` is wrong")
    assert "expected comes from: central difference of forward" in printed
    write(tmp_path / "squares.py", factor=2)
    assert exit_code(script)[0] == 0
    (tmp_path / "squares.py").write_text("")
    assert exit_code(script)[0] == 2


def test_hostile_values_are_no_code(gradlint: Command, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s """ \n# here'
    folder.mkdir()
    value = repr("\"\"\"\nraise SystemExit(9)\n'''\\")
    write(folder / "squares.py", value=value)
    run = gradlint(folder, *WORDS)
    assert run.returncode == 1
    assert exit_code(folder / "out" / "Square_GL401.py")[0] == 1


def test_files_of_others_are_left_alone(gradlint: Command, tmp_path: Path) -> None:
    write(tmp_path / "squares.py")
    mine = tmp_path / "out" / "Square_GL401.py"
    mine.parent.mkdir()
    mine.write_text("mine = 1\n")
    gradlint(tmp_path, *WORDS)
    gradlint(tmp_path, *WORDS)
    assert mine.read_text() == "mine = 1\n"
    assert sorted(path.name for path in mine.parent.iterdir()) == [
        "Square_GL401.py",
        "Square_GL401_2.py",
    ]


def test_what_cannot_be_shown_is_said(gradlint: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n" + WRONG)
    run = gradlint(tmp_path, "check", "broken.py:Square", "--repro", "out")
    assert "no script for GL001 of broken.py:Square: the operator can't be loaded" in run.stderr
    assert list((tmp_path / "out").iterdir()) == []
