"""Programs that no recorder would like: each ends in a clear message, and what was seen is kept."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from gradlint.spec.load import load
from tests.conftest import Command, Done

OPS = '''\
import functools

import torch
from torch.autograd import Function


def wrapped(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


def static(function):
    def inner(*args):
        return function(*args)

    return staticmethod(inner)


def registered(cls):
    cls.registered = True
    return cls


def applied(cls):
    return cls.apply


@registered
class Sine(Function):
    @static
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @wrapped
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


@applied
class Replaced(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Many(Function):
    @staticmethod
    def forward(ctx, x, *rest):
        ctx.count = len(rest)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return (grad * 2, *[None] * ctx.count)


class First(Function):
    """Holds one row, however large its input is."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[0].clone()

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_zeros(ctx.shape)
        out[0] = grad
        return out


def factory(factor):
    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * factor

    return Made


Double = factory(2)

exec("""
class Generated(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 5

    @staticmethod
    def backward(ctx, grad):
        return grad * 5
""")
'''

HEAD = "import ctypes, os, torch, ops\nx = torch.randn(20, 12, requires_grad=True)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "ops.py").write_text(OPS)
    return tmp_path


def recorded(gradlint: Command, folder: Path, program: str, **variables: str) -> Done:
    """``gradlint record`` of a program; it has said what it could not do, and touched nothing."""
    (folder / "program.py").write_text(program)
    sources = [path for path in folder.rglob("*") if path.suffix in (".py", ".zip")]
    before = {path: path.read_bytes() for path in sources}
    words = ("record", "-o", "specs", "--seed", "0", "--", sys.executable, "program.py")
    done = gradlint(folder, *words, **variables)
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    return done


def specs(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "specs").glob("*.yaml")}


def checked(gradlint: Command, folder: Path) -> None:
    """What was recorded passes."""
    select = ("--select", "GL0,GL1,GL401", "--seed", "0")
    done = gradlint(folder, "check", "specs", *select)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("end", "code", "unfinished"),
    [
        ("ctypes.string_at(0)", 139, 1),
        ("os.abort()", 134, 1),
        ("os._exit(3)", 3, 1),
        ("raise SystemExit(4)", 4, 0),
        ("raise RuntimeError('of the program')", 1, 0),
    ],
)
def test_a_program_that_ends_early(
    gradlint: Command, folder: Path, end: str, code: int, unfinished: int
) -> None:
    done = recorded(gradlint, folder, f"{HEAD}ops.Sine.apply(x)\n{end}\n")
    assert done.returncode == code
    assert f"the program ended with exit code {code}" in done.stderr
    assert "1 operator in 1 call and 1 process: 1 spec in specs" in done.stderr
    assert ("1 process did not end in order" in done.stderr) == bool(unfinished)
    assert specs(folder) == {"Sine"}


def test_a_program_that_forks(gradlint: Command, folder: Path) -> None:
    program = (
        f"{HEAD}ops.Sine.apply(x)\nfor code in (0, 1, 2):\n    pid = os.fork()\n"
        "    if not pid:\n        ops.Sine.apply(x[:code + 2])\n        os._exit(code)\n"
        "    os.waitpid(pid, 0)\n"
    )
    done = recorded(gradlint, folder, program)
    assert done.returncode == 0
    assert "1 operator in 4 calls and 4 processes: 1 spec in specs" in done.stderr
    assert "3 processes did not end in order" in done.stderr
    checked(gradlint, folder)


def test_a_million_arguments(gradlint: Command, folder: Path) -> None:
    done = recorded(gradlint, folder, f"{HEAD}ops.Many.apply(x, *[0] * 1_000_000)\n")
    assert done.returncode == 0
    assert "ops.py:Many (Many.yaml): call 1 had more arguments than were kept" in done.stderr
    assert (folder / "specs/Many.yaml").stat().st_size < 10_000
    checked(gradlint, folder)


def test_one_tensor_for_several_arguments(gradlint: Command, folder: Path) -> None:
    """A spec gives each argument a tensor of its own, and some get no gradient then."""
    (folder / "ops.py").write_text(
        OPS + "\n\nclass Twice(Function):\n    @staticmethod\n    def forward(ctx, x, y):\n"
        "        return x * 2 + y.detach()\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        return grad * 2, None\n"
    )
    done = recorded(gradlint, folder, f"{HEAD}ops.Twice.apply(x, x).sum().backward()\n")
    assert done.returncode == 0
    assert (
        "ops.py:Twice (Twice.yaml): call 1 passes one tensor for several arguments: a spec gives "
        "each its own" in done.stderr
    )
    assert "does not run" not in done.stderr
    assert specs(folder) == {"Twice"}


def test_huge_tensors(gradlint: Command, folder: Path) -> None:
    """Of 12 GB and more, had they memory of their own."""
    program = (
        f"{HEAD}ops.First.apply(torch.ones(1, 1).expand(50_000, 60_000).requires_grad_())\n"
        "ops.Sine.apply(torch.empty(60_000, 80_000, device='meta', requires_grad=True))\n"
    )
    done = recorded(gradlint, folder, program)
    assert done.returncode == 0
    assert "2 operators in 2 calls and 1 process: 2 specs in specs" in done.stderr
    spec = load(str(folder / "specs/First.yaml"))
    assert spec.inputs["x"].shape == ["N", "M"]
    assert set(spec.dims or {}) == {"N", "M"}
    checked(gradlint, folder)


def test_decorated_and_generated_classes(gradlint: Command, folder: Path) -> None:
    called = "(ops.Sine.apply, ops.Replaced, ops.Double.apply, ops.Generated.apply)"
    done = recorded(gradlint, folder, f"{HEAD}for f in {called}:\n    f(x).sum().backward()\n")
    assert done.returncode == 0
    assert specs(folder) == {"Sine", "Made", "Generated"}
    assert load(str(folder / "specs/Made.yaml")).op == "../ops.py:Double"
    assert (
        "Replaced (no spec): nothing in its module leads to it, so that no target can name it: "
        "something else has its name there, as after a decorator" in done.stderr
    )
    checked(gradlint, folder)


def test_a_notebook(gradlint: Command, folder: Path) -> None:
    """As IPython runs cells: in a module ``__main__`` without a file."""
    cells = (
        "import sys, types\nmain = sys.modules['__main__'] = types.ModuleType('__main__')\n"
        f"cell = {OPS[: OPS.index('def factory')]!r}\n"
        "exec(compile(cell, '/tmp/ipykernel_1/1.py', 'exec'), vars(main))\n"
        "main.Sine.apply(main.torch.ones(2, 3, requires_grad=True))\n"
    )
    done = recorded(gradlint, folder, cells)
    assert done.returncode == 5
    assert (
        "__main__:Sine (no spec): its code lies in no .py file, as in a notebook or with python -c"
        in done.stderr.replace("  Sine", "  __main__:Sine")
    )
    (folder / "cells.ipynb").write_text('{"cells": []}')
    for target in ("cells.ipynb", "cells.ipynb:Sine"):
        for command in ("check", "fix"):
            done = gradlint(folder, command, target)
            assert done.returncode == 2
            told = " ".join(done.stderr.split())
            assert "A notebook is not read: put the operator into a .py file" in told


def test_an_archive(gradlint: Command, folder: Path) -> None:
    with zipfile.ZipFile(folder / "lib.zip", "w") as file:
        file.writestr("zipped/__init__.py", "")
        file.writestr("zipped/ops.py", OPS.replace("grad * x.cos()", "-grad * x.cos()"))
    program = (
        "import sys\nsys.path.insert(0, 'lib.zip')\nimport torch\nfrom zipped.ops import Sine\n"
        "Sine.apply(torch.randn(3, 4, requires_grad=True)).sum().backward()\n"
    )
    done = recorded(gradlint, folder, program)
    assert done.returncode == 5
    assert (
        "zipped.ops:Sine (no spec): its source lies in the archive lib.zip, which gradlint does "
        "not find: put that on PYTHONPATH and record again" in done.stderr
    )
