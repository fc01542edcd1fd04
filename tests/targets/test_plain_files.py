"""Which files keep to themselves, as far as their text shows."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradlint.targets.plain_files import is_plain
from gradlint.targets.source_file import read_source

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"

#: What people write.
PLAIN = {
    "a function": """
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale=2.0):
                ctx.save_for_backward(x)
                ctx.scale = scale
                with torch.no_grad():
                    return torch.exp(x) * math.sqrt(scale) + F.relu(x)

            @staticmethod
            def backward(ctx, grad_output):
                (x,) = ctx.saved_tensors
                return grad_output * (x.exp() * ctx.scale), None
    """,
    "names from torch": """
        from dataclasses import dataclass
        from torch import Tensor
        from torch.autograd import Function
        from torch.autograd.function import once_differentiable

        class Op(Function):
            @staticmethod
            @once_differentiable
            def backward(ctx, grad_output: Tensor) -> Tensor:
                return grad_output
    """,
    "a module with state of its own": """
        class Layer(nn.Module):
            calls = 0

            def __init__(self, width: int) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(width))
                self.register_buffer("mean", torch.zeros(width))

            def forward(self, x):
                Layer.calls += 1
                self.weight.data[0] = 1.0
                x.grad = None
                return x * self.weight
    """,
    "what the file itself keeps": """
        TABLE = {}
        COUNT = 0

        def lookup(n):
            global COUNT
            COUNT += 1
            TABLE[n] = torch.arange(n)
            return TABLE[n]
    """,
    "classes of torch's": """
        from typing import Any, Optional
        from torch import Tensor
        from torch.autograd.function import FunctionCtx

        class Layer(nn.Module):
            def forward(self, x: Optional[Tensor], *rest: Any) -> "tuple[Tensor | None, int]":
                try:
                    act = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
                except RuntimeError:
                    raise ValueError("no") from None
                first: torch.Tensor = act(x)
                return first if isinstance(x, (Tensor, nn.Parameter)) else None, 1
    """,
    "builtins as arguments": "def f(max, sum, type):\n    return torch.clamp(sum, max=max)",
    "a generator of its own": "g = torch.Generator().manual_seed(3)",
}

#: What would change something beyond the file, or may.
NOT_PLAIN = {
    "another module": "import os",
    "one below torch": "import torch.utils.cpp_extension",
    "one beside it": "from .common import helper",
    "all names": "from torch import *",
    "a seed": "torch.manual_seed(0)",
    "a seed by its name": "from torch import manual_seed",
    "a default": "torch.set_default_dtype(torch.float64)",
    "anomaly detection": "torch.autograd.set_detect_anomaly(True)",
    "a flag": "torch.backends.cudnn.benchmark = True",
    "an operator of torch's": "lib = torch.library.Library('aten', 'IMPL')",
    "the inside": "torch._C._set_grad_enabled(False)",
    "hooks of all modules": "nn.modules.module.register_module_forward_hook(print)",
    "a function replaced": "torch.relu = None",
    "a function replaced in a loop": "for torch.relu in [None]: pass",
    "a function deleted": "del F.relu",
    "a method replaced": "torch.Tensor.relu = None",
    "a module by another name": "t = torch\nt.relu = None",
    "a module handed on": "print(torch)",
    "a class by another name": "from torch import Tensor\nT = Tensor\nT.relu = None",
    "a class handed on": "def f(self):\n    self.forward = None\nf(nn.Module)",
    "a class in a list": "for self in [nn.Module]:\n    self.forward = None",
    "the class of an object": "type(torch.ones(1)).relu = None",
    "the globals of a function": "torch.relu.__globals__",
    "a name shadowed": "def f(F):\n    return F.relu",
    "setattr": "setattr(F, 'relu', None)",
    "getattr": "getattr(torch, 'set_default_dtype')(torch.float64)",
    "exec": "exec('import os')",
    "an import by a function": "__import__('os')",
    "a file": "open('x')",
    "an object that tidies up": "class A:\n    def __del__(self):\n        pass",
    "a tensor that steps in": """
        class A(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func(*args)
    """,
    "a metaclass": "class A(nn.Module, metaclass=object):\n    pass",
    "a frame": "def f(error):\n    return error.tb_frame",
    "compiled": "f = torch.compile(F.relu)",
    "no Python": "def f(:",
}  # fmt: skip


def plain(folder: Path, text: str) -> bool:
    file = folder / "ops.py"
    file.write_text(HEAD + dedent(text))
    source = read_source(str(file))
    assert source is not None
    return is_plain(source)


@pytest.mark.parametrize("kind", PLAIN)
def test_a_file_that_keeps_to_itself_is_plain(kind: str, tmp_path: Path) -> None:
    assert plain(tmp_path, PLAIN[kind])


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_a_file_that_may_reach_beyond_is_not(kind: str, tmp_path: Path) -> None:
    assert not plain(tmp_path, NOT_PLAIN[kind])


def test_the_examples_are_plain() -> None:
    for folder in ("right", "wrong"):
        for file in (Path(__file__).parents[2] / "examples" / folder).glob("*.py"):
            source = read_source(str(file))
            assert source is not None
            assert is_plain(source), file
