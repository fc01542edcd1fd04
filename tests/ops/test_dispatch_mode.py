"""Modes see every operation, and do not import the compiler for it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import gradlint
from gradlint.ops.dispatch_mode import DispatchMode


class Counting(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class Inheriting(Counting):
    pass


@pytest.mark.parametrize("compiler", [False, True])
@pytest.mark.parametrize("kind", [Counting, Inheriting])
def test_every_operation_is_seen(
    kind: type[Counting], compiler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler:
        importlib.import_module("torch._dynamo")
    else:
        monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    x = torch.ones(3)
    mode = kind()
    with mode:
        x.exp()
        assert ("__torch_dispatch__" in vars(mode)) is not compiler
        with mode:
            x.sin()
        x.cos()
    x.tan()
    with mode:
        x.sqrt()
    inner = ["sin"] if mode.names.count("sin") == 1 else ["sin", "sin"]  # entered twice
    assert mode.names == ["exp", *inner, "cos", "sqrt"]
    assert "__torch_dispatch__" not in vars(mode)


PROGRAM = """
import sys, torch
from tests.ops.test_dispatch_mode import Counting
with Counting() as mode:
    torch.ones(3).exp()
print(mode.names[-1], "torch._dynamo" in sys.modules)
"""


def test_the_compiler_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == ["exp", "False"], done.stderr


JUDGED = """
import sys, torch, gradlint
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0.1) * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.where(x > 0.1, 2 * x, 0.1)
x = torch.rand(3, dtype=torch.float64, requires_grad=True)
report = gradlint.check(Square, (x,), select=["GL401"])
print(report.targets[0].verdict, "torch._dynamo" in sys.modules)
"""


def test_a_check_that_compiles_nothing_does_not_import_it() -> None:
    done = subprocess.run([sys.executable, "-c", JUDGED], capture_output=True, text=True)
    assert done.stdout.split() == ["pass", "False"], done.stderr


def test_all_modes_of_gradlint_are_of_this_kind() -> None:
    package = Path(gradlint.__file__).parent
    files = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    assert {f for f in files if "import TorchDispatchMode" in (package / f).read_text()} == {
        "ops/dispatch_mode.py"
    }
