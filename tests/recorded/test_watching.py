"""The recorded program: it runs as it would alone, and its calls are noted in every process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gradlint.base.errors import GradlintError
from gradlint.recorded.calls import Call, read_calls
from gradlint.recorded.read import Operator, Recording, read_recording
from gradlint.recording import run_program

OPS = """\
import warnings

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n=2):
        warnings.warn(f"as seen by who calls: {n}", stacklevel=3)
        ctx.save_for_backward(x)
        if n == 7:
            raise ValueError("seven is refused")
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad, None


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(x, scale, flag=True):
        return Square.apply(x) * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * ctx.scale * grad, None, None


square = Square.apply


@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor
"""

PROGRAM = """\
import sys
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ops import Outer, Square, square, twice


class Count(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.seen += 1
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
x = torch.randn(3, 4, requires_grad=True)
for n in range(6):
    y = square(x, n)
    y.sum().backward()
    x = torch.randn(3 + n, 4, requires_grad=True)
with torch.no_grad():
    Square.apply(x)
with torch.inference_mode():
    Square.apply(torch.ones(2))
with torch.autocast("cpu", torch.bfloat16):
    Square.apply(x)
with Count():
    Square.apply(x)
Outer.apply(x, 3.0).sum().backward()
twice(x.detach())
torch.ops.mine.twice(x.detach(), factor=3.0)
torch.ops.mine.twice.default(x.detach())
for wrong in (lambda: Square.apply(x, 7), lambda: torch.ops.mine.twice("no tensor")):
    try:
        wrong()
    except Exception:
        traceback.print_exc()
print(Count.seen, torch.rand(1).item(), float(y.sum()), x._version, sys.argv[1:])
print("sitecustomize" in sys.modules, len(sys.path), torch.get_num_threads())
sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    Path("ops.py").write_text(OPS)
    return tmp_path


def recorded(command: Sequence[str], names: Sequence[str] = ()) -> tuple[int, Recording]:
    """The exit code of a program, and what it left."""
    os.makedirs("scratch")
    return run_program(command, "scratch", names), read_recording("scratch")


def found(recording: Recording, name: str) -> Operator:
    (operator,) = [item for item in recording.operators if item.name == name]
    return operator


def shapes(call: Call) -> list[list[int]]:
    return [entry["shape"] for entry in call.tensors]


def test_the_program_runs_as_it_would_alone(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", "--lr", "1"]
    alone = subprocess.run(command, capture_output=True, text=True)
    code, recording = recorded(command)
    seen = capfd.readouterr()
    assert alone.returncode == code == 3
    assert seen.out.replace("True ", "False ") == alone.stdout.replace("True ", "False ")
    assert seen.err == alone.stderr
    assert "seven is refused" in seen.err
    assert (recording.processes, recording.unfinished, recording.unreadable) == (1, 0, 0)

    square = found(recording, "Square")
    assert (square.kind, square.attribute, square.module) == ("function", "Square", "ops")
    assert square.file == str(folder / "ops.py")
    assert square.calls == 6 + 4 + 1 + 1  # the loop, contexts, within Outer, the one that raises
    calls = {call.number: call for call in read_calls(square.files)}
    assert [shapes(calls[n]) for n in (1, 2, 6)] == [[[3, 4]], [[3, 4]], [[7, 4]]]
    assert calls[1].tensors[0]["requires_grad"]
    assert calls[1].args == [["tensor", 0], ["plain", 0]]
    assert calls[1].values[0] is not None
    assert calls[1].values[0].flatten()[0].item() == pytest.approx(1.5409960746765137)
    assert calls[7].context == {"grad": False, "inference": False}
    assert calls[8].context["inference"]
    assert calls[9].context["autocast"] == "bfloat16 on cpu"
    outer = found(recording, "Outer")
    assert (outer.calls, read_calls(outer.files)[0].args[1]) == (1, ["float", (3.0).hex()])
    twice = found(recording, "torch.ops.mine.twice")
    assert (twice.kind, twice.calls) == ("library", 4)
    assert ("ops", str(folder / "ops.py")) in twice.callers
    assert read_calls(twice.files)[1].kwargs == {"factor": ["float", (3.0).hex()]}
    assert {operator.name for operator in recording.operators} == {
        *("Square", "Outer", "torch.ops.mine.twice")
    }


COMPILED = """\
import torch

from ops import twice


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


twice.register_fake(lambda x, factor=2.0: torch.empty_like(x))


@torch.compile(backend="aot_eager", fullgraph=True)
def compiled(x):
    return Scale.apply(x, 3.0).sum() + torch.ops.mine.twice(x.detach()).sum()


@torch.jit.script
def scripted(x: torch.Tensor):
    return torch.ops.mine.twice(x)


x = torch.ones(4, requires_grad=True)
compiled(x).backward()
print(x.grad.tolist(), scripted(torch.ones(2)).tolist())
print(torch.func.grad(lambda x: x.sin().sum())(torch.zeros(2)).tolist())
"""


def test_compiled_and_scripted_programs_run(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("program.py").write_text(COMPILED)
    code, recording = recorded([sys.executable, "-W", "ignore", "program.py"])
    assert code == 0
    assert capfd.readouterr().out == "[3.0, 3.0, 3.0, 3.0] [2.0, 2.0]\n[1.0, 1.0]\n"
    assert recording.unreadable == 0


PROCESSES = """\
import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset

from ops import Square


class Here(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad


class Data(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return Square.apply(torch.full((5 + index,), 1.0)).sum()


def work(size):
    Square.apply(torch.ones(size, 2))
    Here.apply(torch.ones(size))


if __name__ == "__main__":
    Square.apply(torch.ones(2))
    for size, method in ((3, "fork"), (4, "spawn")):
        process = multiprocessing.get_context(method).Process(target=work, args=(size,))
        process.start()
        process.join()
        assert process.exitcode == 0, method
    assert [float(item) for item in DataLoader(Data(), num_workers=2)] == [5, 6, 7, 8]
    subprocess.run([sys.executable, "-c", "import ops, torch; ops.square(torch.ones(1, 9))"])
    subprocess.run([sys.executable, "-c", "import sys; assert 'torch' not in sys.modules"])
    sys.stdout.flush()
    os._exit(4)
"""


def test_every_process_of_the_program_is_watched(folder: Path) -> None:
    Path("program.py").write_text(PROCESSES)
    code, recording = recorded([sys.executable, "-W", "ignore", "program.py"])
    assert code == 4
    square, here = found(recording, "Square"), found(recording, "Here")
    seen = {tuple(shapes(call)[0]) for call in read_calls(square.files)}
    assert {(2,), (3, 2), (4, 2), (5,), (6,), (7,), (8,), (1, 9)} == seen
    # One operator, though the script is `__mp_main__` in the process that it spawned.
    assert {tuple(shapes(call)[0]) for call in read_calls(here.files)} == {(3,), (4,)}
    assert (here.file, here.attribute) == (str(folder / "program.py"), "Here")
    assert square.processes == 6
    assert recording.unfinished == 1  # the one that left by os._exit


LOADING = """\
import torch
from torch.utils.data import DataLoader, Dataset

from ops import Square


class Data(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return Square.apply(torch.ones(3))


if __name__ == "__main__":
    for _ in range(2):
        assert sum(len(rows) for rows in DataLoader(Data(), batch_size=4, num_workers=2)) == 40
"""


def test_workers_that_load_data_tell_all_their_calls(folder: Path) -> None:
    Path("program.py").write_text(LOADING)
    code, recording = recorded([sys.executable, "-W", "ignore", "program.py"])
    assert (code, recording.unfinished) == (0, 0)
    square = found(recording, "Square")
    assert (square.calls, square.processes) == (80, 4)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.abort()", 128 + signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("raise KeyboardInterrupt", 128 + signal.SIGINT),
    ],
)
def test_what_was_written_stays_when_the_program_crashes(folder: Path, end: str, code: int) -> None:
    program = "import os, signal, torch, ops\nops.square(torch.ones(2, 3))\n"
    Path("program.py").write_text(program + end)
    seen, recording = recorded([sys.executable, "-W", "ignore", "program.py"])
    assert seen == code
    (call,) = read_calls(found(recording, "Square").files)
    assert shapes(call) == [[2, 3]]
    assert recording.unfinished == (end != "raise KeyboardInterrupt")


LARGE = """\
import torch


class Many(torch.autograd.Function):
    @staticmethod
    def forward(ctx, first, *rest):
        return first.sum() if first.is_floating_point() else first.new_zeros(())

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError


one = torch.ones(())
Many.apply(one, *[one] * 200_000)
Many.apply(torch.ones(1).expand(2_500_000_000))
Many.apply(torch.arange(1_000_000), {"a": [1, 2.5, None, "text", 3j], "b": torch.float32})
Many.apply(one, object(), torch.relu, lambda: 0, "x" * 5000, 10**200)
for step in range(3000):
    Many.apply(one, step)
"""


def test_large_arguments_are_described(folder: Path) -> None:
    Path("program.py").write_text(LARGE)
    code, recording = recorded([sys.executable, "program.py"])
    assert code == 0
    many = found(recording, "Many")
    assert many.calls == 3004
    # Numbers of steps are no options: after some dozens they no longer make another kind of call.
    assert len(many.files) <= 64
    assert sum(os.path.getsize(path) for path in many.files) < 2_000_000
    first, second, third, fourth = read_calls(many.files)[:4]
    assert (len(first.args), first.more, first.cut) == (64, 200_001 - 64, True)
    assert first.tensors[0]["shape"] == []  # the same tensor is one
    assert second.tensors[0]["shape"] == [2_500_000_000]
    assert second.tensors[0]["block"] == [16384]
    assert third.tensors[0]["range"] == [0.0, 999_999.0]
    assert third.args[1] == [
        "dict",
        [
            [
                "a",
                [
                    "list",
                    [
                        *(["plain", 1], ["float", (2.5).hex()], ["plain", None]),
                        *(["plain", "text"], ["complex", [(0.0).hex(), (3.0).hex()]]),
                    ],
                    0,
                ],
            ],
            ["b", ["dtype", "float32"]],
        ],
        0,
    ]
    assert [text.split(" at ")[0] for text in fourth.objects] == [
        "object",
        "builtin_function_or_method torch._VariableFunctionsClass.relu",
        "function __main__.<lambda>",
        "str",
        "int",
    ]


def test_a_program_that_imports_no_torch(folder: Path) -> None:
    code, recording = recorded([sys.executable, "-c", "raise SystemExit(9)"])
    assert (code, recording) == (9, Recording())


def test_a_program_that_can_not_be_started(folder: Path) -> None:
    with pytest.raises(GradlintError, match=r"no_such_program --x: can't be started: No such file"):
        recorded(["no_such_program", "--x"])


def test_the_sitecustomize_of_the_user_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "own").mkdir()
    (folder / "own/sitecustomize.py").write_text("print('own', __file__)\n")
    monkeypatch.setenv("PYTHONPATH", str(folder / "own"))
    code, _ = recorded([sys.executable, "-c", "import sitecustomize, sys; print(sys.path[1])"])
    assert code == 0
    own = folder / "own"
    assert capfd.readouterr().out == f"own {own / 'sitecustomize.py'}\n{own}\n"


NAMED = """\
import sys

import torch

import ops2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, *, gain=1.0):
        return x * self.weight * gain


Net()(torch.ones(2, 3), gain=2.0)
ops2.Other()(torch.ones(4))
ops2.scaled(torch.ones(5), 3)
from ops2 import scaled
scaled(torch.ones(6), 3)
print(scaled.__name__, Net.forward.__qualname__)
"""


def test_modules_and_functions_by_name(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("program.py").write_text(NAMED)
    Path("ops2.py").write_text(
        "import torch\n\n\ndef scaled(x, n):\n    return x * n\n\n\n"
        "class Other(torch.nn.Module):\n    def forward(self, x):\n        return -x\n"
    )
    names = ["program.py:Net", "ops2:Other", "ops2.py:scaled"]
    code, recording = recorded([sys.executable, "program.py"], names)
    assert code == 0
    assert capfd.readouterr().out == "scaled Net.forward\n"
    kinds = {(item.kind, item.name): item for item in recording.operators}
    assert set(kinds) == {("module", "Net"), ("module", "Other"), ("callable", "scaled")}
    (call,) = read_calls(kinds["module", "Net"].files)
    assert (call.args, call.kwargs) == ([["tensor", 0]], {"gain": ["float", (2.0).hex()]})
    assert [shapes(call) for call in read_calls(kinds["callable", "scaled"].files)] == [
        [[5]],
        [[6]],
    ]


@pytest.mark.parametrize("name", ["scaled", "ops:", "ops.py", "no_such.py:f"])
def test_a_name_that_is_none(folder: Path, name: str) -> None:
    with pytest.raises(GradlintError):
        recorded([sys.executable, "-c", ""], [name])
