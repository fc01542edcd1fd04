"""Scripts from the command line to their exit codes, with names that would like to be code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from gradlint import reproducing
from tests.conftest import Command
from tests.reproduction.support.script_runner import ScriptRunner

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


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptRunner]:
    with ScriptRunner(tmp_path_factory.mktemp("scripts")) as made:
        yield made


def test_a_script_is_a_program(gradlint: Command, tmp_path: Path, runner: ScriptRunner) -> None:
    """And does the same where the tests run it faster."""
    write(tmp_path / "squares.py")
    gradlint(tmp_path, *WORDS)
    script = tmp_path / "out" / "Square_GL401.py"
    for factor, code in ((3, 1), (2, 0)):
        write(tmp_path / "squares.py", factor=factor)
        command = [sys.executable, "-I", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == runner(script)
        assert done.returncode == code


def test_script_shows_the_defect_until_it_is_mended(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    write(tmp_path / "squares.py")
    run = gradlint(tmp_path, *WORDS)
    assert run.returncode == 1
    script = tmp_path / "out" / "Square_GL401.py"
    assert "python out/Square_GL401.py" in run.stdout
    assert "gradlint" not in script.read_text()
    code, printed = runner(script)
    assert (code, printed.splitlines()[0]) == (1, "the gradient of `x` is wrong")
    assert "expected comes from: central difference of forward" in printed
    write(tmp_path / "squares.py", factor=2)
    assert runner(script)[0] == 0
    (tmp_path / "squares.py").write_text("")
    assert runner(script)[0] == 2


UNWRITTEN = """
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        total = torch.{made}_like(scale)
        if x.numel():
            total.copy_((grad_output * x).sum(0))
        return grad_output * scale, total

    @staticmethod
    def sample_inputs():
        return tuple(
            torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (4,))
        )
"""


def test_memory_that_holds_zeros_by_chance_is_shown(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    (tmp_path / "ops.py").write_text(UNWRITTEN.format(made="empty"))
    run = gradlint(tmp_path, "check", "ops.py:Op", "--select", "GL705", "--repro", "out")
    assert run.returncode == 1, run.stdout
    script = tmp_path / "out" / "Op_GL705.py"
    for _ in range(3):
        code, printed = runner(script)
        assert code == 1, printed
        assert "memory that was never written is in the gradient of `scale`" in printed
    (tmp_path / "ops.py").write_text(UNWRITTEN.format(made="zeros"))
    assert runner(script)[0] == 0


def test_hostile_values_are_no_code(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    folder = tmp_path / 'it\'s """ \n# here'
    folder.mkdir()
    value = repr("\"\"\"\nraise SystemExit(9)\n'''\\")
    write(folder / "squares.py", value=value)
    run = gradlint(folder, *WORDS)
    assert run.returncode == 1
    assert runner(folder / "out" / "Square_GL401.py")[0] == 1


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


ENDING = """
import ctypes, os, time
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        {backward}
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(2, 3, dtype=torch.float64, requires_grad=True),)
"""


def shown(gradlint: Command, folder: Path, forward: str, backward: str, code: str) -> Path:
    """The script for a check that ends with ``code``, tried by then."""
    (folder / "ops.py").write_text(ENDING.format(forward=forward, backward=backward))
    words = ("check", "ops.py:Op", "--select", "GL401", "--seed", "1", "--timeout", "2")
    run = gradlint(folder, *words, "--repro", "out")
    assert code in run.stdout
    script = folder / "out" / f"Op_{code}.py"
    assert script.exists(), run.stderr
    return script


def mended(folder: Path, script: Path, runner: ScriptRunner) -> list[int]:
    """With what ``script`` exits where forward and backward return, and where one raises."""
    codes = []
    for backward in ("pass", "raise ValueError"):  # what is raised is another defect
        (folder / "ops.py").write_text(ENDING.format(forward="pass", backward=backward))
        codes.append(runner(script)[0])
    return codes


def test_what_ends_the_process_is_shown(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    texts = []
    for forward, backward, told in (
        ("pass", "ctypes.string_at(0)", "the call ends the process"),
        ("os._exit(3)", "pass", "got       exit status 3"),
        ("pass", "raise SystemExit(0)", "got       exit status 0"),
    ):
        script = shown(gradlint, tmp_path, forward, backward, "GL005")
        exits, printed = runner(script)
        assert (exits, told in printed) == (1, True), printed
        texts.append(script.read_text().partition("\n")[2])
    assert texts == texts[:1] * 3  # but for the first line: what mends one, mends all
    assert mended(tmp_path, script, runner) == [0, 0]


#: What a script lets a call take, and what it gets where a call that does not end is waited for.
PATIENT, HASTY = "ends_badly(case, 20.0)", "ends_badly(case, 2.0)"


def test_what_does_not_end_is_shown(
    gradlint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: ScriptRunner
) -> None:
    def write_whole(path: str, parts: Iterable[str]) -> None:
        text = "".join(parts)
        assert text.count(PATIENT) == 1
        Path(path).write_text(text.replace(PATIENT, HASTY), encoding="utf-8")

    monkeypatch.setattr(reproducing, "write_whole", write_whole)
    script = shown(gradlint, tmp_path, "pass", "time.sleep(10000)", "GL006")
    exits, printed = runner(script)
    assert (exits, "the call does not end" in printed) == (1, True), printed
    script.write_text(script.read_text().replace(HASTY, PATIENT))
    assert mended(tmp_path, script, runner) == [0, 0]


def test_an_operator_with_a_spec_is_found_in_its_module(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    write(tmp_path / "squares.py")
    (tmp_path / "square.yaml").write_text(
        "op: squares.py:Square\ninputs:\n  x: {shape: [3, 5]}\n  mode: {value: plain}\n"
    )
    run = gradlint(tmp_path, "check", "square.yaml", *WORDS[2:])
    assert run.returncode == 1
    (script,) = (tmp_path / "out").glob("*.py")
    assert runner(script)[0] == 1
    write(tmp_path / "squares.py", factor=2)
    assert runner(script)[0] == 0


SPEC = """\
let:
  inside: "0 < x < maximum(y, 0.25)"
  s: "torch.sigmoid(x) * sqrt(2)"
forward: "where(inside, s, F.softplus(x)) + zeros_like(x) + ones(1) * scale"
backward:
  x: "grad_output * where(inside, s * (1 - sigmoid(x)), {gradient})"
inputs:
  x: {{shape: [4, 5]}}
  y: {{shape: [4, 5], requires_grad: false}}
  scale: {{values: [0.5, 0.0]}}
"""


def test_formulas_of_a_spec_are_shown(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    spec = tmp_path / "formulas.yaml"
    spec.write_text(SPEC.format(gradient="2 * sigmoid(x)"))
    run = gradlint(tmp_path, "check", "formulas.yaml", *WORDS[2:])
    assert run.returncode == 1
    script = tmp_path / "out" / "formulas_yaml_GL401.py"
    assert script.exists(), run.stderr
    assert "gradlint" not in script.read_text()
    code, printed = runner(script)
    assert (code, printed.splitlines()[0]) == (1, "the gradient of `x` is wrong")
    spec.write_text(SPEC.format(gradient="sigmoid(x)"))
    assert runner(script)[0] == 0  # mended in the specification
    # Where nothing reads YAML, it says so, and what stands in the script can be mended there.
    alone = f"import sys\nsys.modules['yaml'] = None\nsys.argv = [{str(script)!r}]\n"
    without_yaml = tmp_path / "without_yaml.py"
    without_yaml.write_text(
        f"{alone}import runpy\nrunpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    code, printed = runner(without_yaml)
    assert code == 2
    assert "has changed, and reading it needs PyYAML" in printed
    spec.unlink()
    assert runner(without_yaml)[0] == 1
    script.write_text(script.read_text().replace("2 * sigmoid(x)", "sigmoid(x)"))
    assert runner(without_yaml)[0] == 0


def test_formulas_that_autograd_differentiates_are_shown(
    gradlint: Command, tmp_path: Path, runner: ScriptRunner
) -> None:
    """And what raises: a formula in the specification can't be more than a formula."""
    text = 'forward: "(x * y).sum(-1)"\nbackward: {x: "grad_output"}\ninputs:\n'
    inputs = "  x: {shape: [4, 5]}\n  y: {shape: [4, 5], requires_grad: false}\n"
    spec = tmp_path / "formulas.yaml"
    spec.write_text(text + inputs)
    words = ("--select", "GL201", "--seed", "1", "--repro", "out")
    run = gradlint(tmp_path, "check", "formulas.yaml", *words)
    script = tmp_path / "out" / "formulas_yaml_GL201.py"
    assert runner(script)[0] == 1, run.stderr
    spec.write_text(text.replace('backward: {x: "grad_output"}\n', "") + inputs)
    assert runner(script)[0] == 0  # autograd differentiates it
    for hostile in ("x.__class__", "__import__('os').getcwd()", "open('x')", "torch._C"):
        spec.write_text(f'forward: "{hostile}"\ninputs:\n{inputs}')
        code, printed = runner(script)
        assert code == 2
        assert "a formula" in printed
